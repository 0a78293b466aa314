"""Decisions on their way to the database: handed over after the answer, written by a thread of their own.

The queue is bounded: when it is full, or the database is away, decisions are dropped and counted; nobody who asks for
hosts ever waits for this. Verdicts become text in the thread as well. It must not know how hosts are chosen.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from kilonova.core import clock
from kilonova.core.decision import Decision
from kilonova.db.queries import decisions
from kilonova.scheduler.narration import decision_of
from kilonova.scheduler.trace import Trace
from kilonova.sql.engine import Database

LOG = logging.getLogger(__name__)

QUEUED: Final = 200
_AT_ONCE: Final = 20
_GATHER: Final = 0.1  # seconds; with the number above it bounds what the thread takes from decisions
_PRUNE_AFTER: Final = 200  # decisions written
_PRUNE_EVERY: Final = 60.0  # seconds
_SAY_EVERY: Final = 60.0
_STOP_WITHIN: Final = 5.0


@dataclass(frozen=True, slots=True)
class Kept:
    """How many decisions are kept, and how long: seconds, 0 for ever."""

    number: int = 10000
    seconds: int = 604800

    @classmethod
    def from_conf(cls, conf: Any) -> Kept:
        """From `[scheduler]`."""
        return cls(conf.scheduler.decisions_kept, conf.scheduler.decisions_kept_seconds)


class Recorder:
    """Takes traces from any thread and writes them in its own, between `start` and `stop`.

    dropped: how many found the queue full or could not be written. written: how many were.
    """

    def __init__(self, database: Database, kept: Kept, scheduler: str = "", queued: int = QUEUED) -> None:
        self._database, self._kept, self._scheduler = database, kept, scheduler
        self._queue: deque[tuple[Trace, datetime]] = deque()
        self._queued = queued
        self._some = threading.Condition()
        self._ending = False
        self._thread: threading.Thread | None = None
        self._since_pruning, self._pruned = 0, float("-inf")
        self._said, self._unsaid = float("-inf"), 0
        self.dropped = self.written = 0

    def add(self, trace: Trace) -> None:
        """Keep the decision, if there is room. Never waits and never fails."""
        with self._some:
            if len(self._queue) < self._queued and not self._ending:
                self._queue.append((trace, clock.utcnow()))
                self._some.notify()
                return
            self._drop(1)

    def start(self) -> None:
        """Begin to write."""
        self._ending = False
        self._thread = threading.Thread(target=self._work, name="decisions", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Write what is waiting, within a few seconds, and end."""
        with self._some:
            self._ending = True
            self._some.notify()
        if self._thread is not None:
            self._thread.join(_STOP_WITHIN)

    def _work(self) -> None:
        while batch := self._batch():
            self._write([decision_of(trace, at, self._scheduler) for trace, at in batch])
            del batch  # verdicts hold whatever they were said of
            self._prune()

    def _batch(self) -> list[tuple[Trace, datetime]]:
        """The next few; empty when it is time to end."""
        with self._some:
            while not self._queue and not self._ending:
                self._some.wait()
            return [self._queue.popleft() for _ in range(min(len(self._queue), _AT_ONCE))]

    def _write(self, made: Sequence[Decision]) -> None:
        if self._try(lambda: decisions.insert(self._database, made)):
            self.written += len(made)
            self._since_pruning += len(made)
            return
        with self._some:
            self._drop(len(made))

    def _prune(self) -> None:
        now = clock.monotonic()
        if self._since_pruning < _PRUNE_AFTER and now - self._pruned < _PRUNE_EVERY:
            return
        self._since_pruning, self._pruned = 0, now
        oldest = clock.utcnow() - timedelta(seconds=self._kept.seconds) if self._kept.seconds else None
        self._try(lambda: decisions.prune(self._database, self._kept.number, oldest))

    def _try(self, work: Callable[[], object]) -> bool:
        try:
            work()
        except Exception as error:  # whatever it is, the next decision is to be written
            LOG.debug("The database of decisions failed", exc_info=error)
            return False
        return True

    def _drop(self, count: int) -> None:
        self.dropped += count
        self._unsaid += count
        now = clock.monotonic()
        if now - self._said >= _SAY_EVERY:
            LOG.warning("%d scheduling decisions could not be kept: the database is away or too slow", self._unsaid)
            self._said, self._unsaid = now, 0
