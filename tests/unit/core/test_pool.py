"""The pool: few threads, only when there is work."""

from __future__ import annotations

import threading

import pytest

from kilonova.core.context import Context, current
from kilonova.core.pool import Pool


def test_no_more_threads_than_its_size_and_all_work_is_done() -> None:
    pool, seen, together = Pool("sized", 3), [], threading.Barrier(3)

    def meet() -> None:
        together.wait(5)  # passes only if three run at once
        seen.append(threading.current_thread().name)

    for _ in range(9):
        pool.submit(meet)
    pool.close()
    assert len(seen) == 9
    assert len(set(seen)) == 3


def test_an_idle_thread_is_used_before_another_is_made() -> None:
    pool = Pool("reused", 8)
    for _ in range(20):
        done = threading.Event()
        pool.submit(done.set)
        assert done.wait(5)
        while pool._idle == 0:
            threading.Event().wait(0.001)
    assert len(pool._threads) == 1
    pool.close()


def test_an_error_stops_neither_the_thread_nor_what_follows_and_no_context_leaks() -> None:
    pool, seen, done = Pool("failing", 1), [], threading.Event()

    def fail() -> None:
        Context(user_id="u")
        raise ZeroDivisionError

    pool.submit(fail)
    pool.submit(lambda: seen.append(current()))
    pool.submit(done.set)
    assert done.wait(5)
    assert seen == [None]
    pool.close()


def test_a_closed_pool_takes_nothing() -> None:
    pool = Pool("closed")
    pool.close()
    with pytest.raises(RuntimeError, match="closed"):
        pool.submit(print)
