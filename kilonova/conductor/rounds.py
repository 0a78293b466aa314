"""Runs the reconcilers by the clock, one after another in one thread: each once soon after the start, then seldom.

Errors are logged and the reconciler comes again in its next round. `leaks` counts what was found and repaired since
the start, by reconciler; in a sound cloud it stays zero.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from kilonova.compute.world import World
from kilonova.conductor.reconcilers import allocations, forgotten, guests, unattended
from kilonova.conductor.reconcilers.memory import Memory
from kilonova.core import clock, context, ids

LOG = logging.getLogger(__name__)

FIRST_AFTER_S = 20.0
"""Agents have beaten by then, and what a restart takes up again is taken up."""


@dataclass(frozen=True, slots=True)
class Reconciler:
    """run(world, memory) repairs what it finds and answers how much that was; interval in seconds, 60 at least."""

    name: str
    interval: float
    run: Callable[[World, Memory], int]


RECONCILERS: Final[tuple[Reconciler, ...]] = (
    Reconciler("guests", 60.0, guests.reconcile),
    Reconciler("forgotten", 120.0, forgotten.reconcile),
    Reconciler("unattended", 120.0, unattended.reconcile),
    Reconciler("allocations", 900.0, allocations.reconcile),
)


class Rounds:
    """The thread, what each reconciler remembers, and what was found."""

    def __init__(self, world: World, reconcilers: Sequence[Reconciler] = RECONCILERS) -> None:
        self._world, self._rows = world, tuple(reconcilers)
        self._stop = threading.Event()
        self._memories: dict[str, Memory] = {row.name: Memory(self._stop.wait) for row in self._rows}
        self._thread: threading.Thread | None = None
        self.leaks: Counter[str] = Counter()

    def start(self) -> None:
        """Begin."""
        self._thread = threading.Thread(target=self._loop, name="reconcilers", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop, waiting for the one that is running."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(10.0)

    def run(self, name: str) -> int:
        """One round of one reconciler, now: what it repaired."""
        row = next(row for row in self._rows if row.name == name)
        with context.preserved():
            context.service_context()
            found = row.run(self._world, self._memories[name])
        if found:
            self.leaks[name] += found
            LOG.warning("Reconciler %s repaired %s leftovers, %s since the start", name, found, self.leaks[name])
        return found

    def _loop(self) -> None:
        begun = clock.monotonic()
        due = {row.name: begun + FIRST_AFTER_S + number for number, row in enumerate(self._rows)}
        while not self._stop.wait(max(0.0, min(due.values()) - clock.monotonic())):
            for row in self._rows:
                if due[row.name] <= clock.monotonic() and not self._stop.is_set():
                    try:
                        self.run(row.name)
                    except Exception:
                        LOG.exception("Reconciler %s failed", row.name)
                    due[row.name] = clock.monotonic() + row.interval * ids.uniform(0.8, 1.2)
