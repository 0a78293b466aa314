from __future__ import annotations

import threading

from kilonova.core.aside import Aside


def test_a_rest_bounds_how_much_is_taken_at_a_time_and_ends_with_the_end() -> None:
    batches: list[list[int]] = []
    begun = threading.Event()

    def work(batch: list[int]) -> int:
        batches.append(batch)
        begun.set()
        return len(batch)

    aside: Aside[int] = Aside("test", work, queued=10, at_once=3, lost="%d", pause=60.0)
    for number in range(5):
        aside.add(number)
    aside.start()
    assert begun.wait(5)
    assert batches == [[0, 1, 2]]
    aside.stop()
    assert batches == [[0, 1, 2], [3, 4]]
    assert (aside.done, aside.dropped) == (5, 0)


def test_what_goes_wrong_is_counted_and_the_rest_is_done() -> None:
    def work(batch: list[int]) -> int:
        return 6 // batch[0] - 5  # 1 for the number 1, and an error for 0

    aside: Aside[int] = Aside("test", work, queued=10, at_once=1, lost="%d")
    for number in (0, 1):
        aside.add(number)
    aside.start()
    aside.stop()
    assert (aside.done, aside.dropped) == (1, 1)
