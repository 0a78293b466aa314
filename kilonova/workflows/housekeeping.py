"""A thread that does a few things every so often: leases, orphans, lost wake-ups, old rows. Not the pool's: a lease
must be renewed while all its threads are busy."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence

from kilonova.core import clock, ids

LOG = logging.getLogger(__name__)

Job = tuple[Callable[[], object], float]


class Housekeeper:
    """Runs each job every so many seconds (± 20 %, so that conductors do not march in step); errors are logged."""

    def __init__(self, jobs: Sequence[Job]) -> None:
        self._jobs = list(jobs)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="housekeeping", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Stop, waiting for the job that is running."""
        self._stop.set()
        if self._thread is not threading.current_thread() and self._thread.is_alive():
            self._thread.join(10.0)

    def _run(self) -> None:
        due = [clock.monotonic() + _jittered(seconds) for _, seconds in self._jobs]
        while not self._stop.wait(max(0.0, min(due) - clock.monotonic())):
            for index, (job, seconds) in enumerate(self._jobs):
                if due[index] <= clock.monotonic():
                    self._do(job)
                    due[index] = clock.monotonic() + _jittered(seconds)

    def _do(self, job: Callable[[], object]) -> None:
        try:
            job()
        except Exception:
            LOG.exception("housekeeping %s failed", getattr(job, "__name__", job))


def _jittered(seconds: float) -> float:
    return seconds * ids.uniform(0.8, 1.2)
