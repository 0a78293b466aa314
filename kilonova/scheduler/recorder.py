"""Decisions on their way to the database: handed over after the answer, written by a thread of their own.

The queue is bounded: when it is full, or the database is away, decisions are dropped and counted; nobody who asks for
hosts ever waits for this. Verdicts become text in the thread as well. It must not know how hosts are chosen.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from kilonova.core import clock
from kilonova.core.aside import Aside
from kilonova.db.queries import decisions
from kilonova.scheduler.narration import decision_of
from kilonova.scheduler.trace import Trace
from kilonova.sql.engine import Database

LOG = logging.getLogger(__name__)

QUEUED: Final = 200
_AT_ONCE: Final = 20
_PAUSE: Final = 0.1  # seconds; with the number above it bounds what the thread takes from decisions
_PRUNE_AFTER: Final = 200  # decisions written
_PRUNE_EVERY: Final = 60.0  # seconds


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
    """Takes traces from any thread and writes them in its own, between `start` and `stop`."""

    def __init__(self, database: Database, kept: Kept, scheduler: str = "", queued: int = QUEUED) -> None:
        self._database, self._kept, self._scheduler = database, kept, scheduler
        self._since_pruning, self._pruned = 0, float("-inf")
        self._aside: Aside[tuple[Trace, datetime]] = Aside(
            "decisions", self._write, queued=queued, at_once=_AT_ONCE, pause=_PAUSE,
            lost="%d scheduling decisions could not be kept: the database is away or too slow",
        )  # fmt: skip
        self.start, self.stop = self._aside.start, self._aside.stop

    @property
    def dropped(self) -> int:
        """How many found the queue full or could not be written."""
        return self._aside.dropped

    @property
    def written(self) -> int:
        """How many were written."""
        return self._aside.done

    def add(self, trace: Trace) -> None:
        """Keep the decision, if there is room. Never waits and never fails."""
        self._aside.add((trace, clock.utcnow()))

    def _write(self, batch: Sequence[tuple[Trace, datetime]]) -> int:
        decisions.insert(self._database, [decision_of(trace, at, self._scheduler) for trace, at in batch])
        self._since_pruning += len(batch)
        self._prune()
        return len(batch)

    def _prune(self) -> None:
        now = clock.monotonic()
        if self._since_pruning < _PRUNE_AFTER and now - self._pruned < _PRUNE_EVERY:
            return
        self._since_pruning, self._pruned = 0, now
        oldest = clock.utcnow() - timedelta(seconds=self._kept.seconds) if self._kept.seconds else None
        try:
            decisions.prune(self._database, self._kept.number, oldest)
        except Exception as error:  # what was written is written
            LOG.debug("The database of decisions failed", exc_info=error)
