"""Everything an agent does by the clock, in one thread whatever the number of hosts and tasks."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kilonova.core import clock, context

LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Task:
    """Runs each `spacing` seconds, at the start too on request; a number that `run` answers is the next wait."""

    name: str
    spacing: float
    run: Callable[[], float | None]
    at_start: bool = False


class Timetable:
    """The tasks of a process and the thread that runs them. A task that fails is logged and comes again."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        self._tasks = tuple(tasks)
        now = clock.monotonic()
        self._due = [now if task.at_start else now + task.spacing for task in self._tasks]
        self._wake = threading.Event()
        self._stopping = False
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin."""
        self._thread = threading.Thread(target=self._loop, name="agent-timetable", daemon=True)
        self._thread.start()

    def hasten(self, name: str) -> None:
        """Run a task now instead of at its time."""
        for number, task in enumerate(self._tasks):
            if task.name == name:
                self._due[number] = clock.monotonic()
        self._wake.set()

    def stop(self) -> None:
        """End when the running task has ended."""
        self._stopping = True
        self._wake.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(timeout=10)

    def run_due(self) -> float:
        """Run what is due; seconds until the next task is."""
        for number, task in enumerate(self._tasks):
            if not self._stopping and self._due[number] <= clock.monotonic():
                self._due[number] = float("inf")  # so that hastening while it runs is not lost below
                wait = _run(task)
                self._due[number] = min(self._due[number], clock.monotonic() + wait)
        return max(0.0, min(self._due) - clock.monotonic())

    def _loop(self) -> None:
        while not self._stopping:
            wait = self.run_due()
            self._wake.wait(min(wait, threading.TIMEOUT_MAX))
            self._wake.clear()


def _run(task: Task) -> float:
    context.service_context()  # a new request id for what this run logs and sends
    try:
        wait = task.run()
    except Exception:
        LOG.exception("The periodic task %s failed", task.name)
        wait = None
    return task.spacing if wait is None else wait
