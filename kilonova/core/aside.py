"""Work that nobody waits for: handed over at once, done by a thread of its own, dropped and counted when there is too
much of it. For what tells of the work and is not part of it.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from typing import Final, Generic, TypeVar

from kilonova.core import clock

LOG = logging.getLogger(__name__)

T = TypeVar("T")

_SAY_EVERY: Final = 60.0
_STOP_WITHIN: Final = 5.0


class Aside(Generic[T]):
    """Takes items from any thread, and does them in its own between `start` and `stop`.

    work: does some, and answers how many of them went well. at_once: the most that it is given. queued: the most that
    wait. pause: seconds that it rests after each time, which with `at_once` bounds what it takes from others. lost: the
    warning about those that did not fit or did not go well, with %d; it is said once a minute. end: called in the
    thread, last. dropped, done: how many so far.
    """

    def __init__(
        self, name: str, work: Callable[[list[T]], int], *, queued: int, at_once: int, lost: str,
        pause: float = 0.0, end: Callable[[], None] = lambda: None,
    ) -> None:  # fmt: skip
        self._name, self._do, self._end, self._lost = name, work, end, lost
        self._queued, self._at_once, self._pause = queued, at_once, pause
        self._queue: deque[T] = deque()
        self._some = threading.Condition()
        self._ending = False
        self._thread: threading.Thread | None = None
        self._said, self._unsaid = float("-inf"), 0
        self.dropped = self.done = 0

    def add(self, item: T) -> None:
        """Hand it over, if there is room. Never waits and never fails."""
        with self._some:
            if len(self._queue) < self._queued and not self._ending:
                self._queue.append(item)
                self._some.notify()
                return
            self._drop(1)

    def start(self) -> None:
        """Begin."""
        self._ending = False
        self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Do what is waiting, within a few seconds, and end."""
        with self._some:
            self._ending = True
            self._some.notify()
        if self._thread is not None:
            self._thread.join(_STOP_WITHIN)

    def _run(self) -> None:
        while batch := self._batch():
            count, done = len(batch), 0
            try:
                done = self._do(batch)
            except Exception as error:  # whatever it is, the next ones are to be done
                LOG.debug("The thread %s failed", self._name, exc_info=error)
            del batch  # items may hold much
            self.done += done
            if done < count:
                with self._some:
                    self._drop(count - done)
            with self._some:
                self._some.wait_for(lambda: self._ending, self._pause)
        self._end()

    def _batch(self) -> list[T]:
        """The next few; empty when it is time to end."""
        with self._some:
            while not self._queue and not self._ending:
                self._some.wait()
            return [self._queue.popleft() for _ in range(min(len(self._queue), self._at_once))]

    def _drop(self, count: int) -> None:
        self.dropped += count
        self._unsaid += count
        now = clock.monotonic()
        if now - self._said >= _SAY_EVERY:
            LOG.warning(self._lost, self._unsaid)
            self._said, self._unsaid = now, 0
