"""One thread for every deadline: a heap of functions that are due later. It runs nothing long: functions hand on."""

from __future__ import annotations

import heapq
import itertools
import logging
import threading
from collections.abc import Callable
from typing import Any, Protocol

from kilonova.core import clock

LOG = logging.getLogger(__name__)


class Timer:
    """One function that is due later. `cancel` forgets it; cancelling twice or late is harmless."""

    __slots__ = ("_heap", "arguments", "due", "function")

    def __init__(self, heap: Heap, due: float, function: Callable[..., object], arguments: tuple[Any, ...]) -> None:
        self._heap, self.due, self.arguments = heap, due, arguments
        self.function: Callable[..., object] | None = function

    def cancel(self) -> None:
        if self.function is not None:
            self.function, self.arguments = None, ()
            self._heap.cancelled()


class Timers(Protocol):
    """Where deadlines are kept."""

    def after(self, seconds: float, function: Callable[..., object], *arguments: Any) -> Timer: ...

    def close(self) -> None: ...


class Heap:
    """The functions by due time (seconds of `clock.monotonic`). Cancelled ones are swept when they are the most."""

    def __init__(self) -> None:
        self._items: list[tuple[float, int, Timer]] = []
        self._order = itertools.count()
        self._cancelled = 0
        self.closed = False
        self.lock = threading.Condition(threading.Lock())

    def push(self, due: float, function: Callable[..., object], arguments: tuple[Any, ...]) -> tuple[Timer, bool]:
        """The timer, and whether it is now the first."""
        timer = Timer(self, due, function, arguments)
        with self.lock:
            heapq.heappush(self._items, (due, next(self._order), timer))
            return timer, self._items[0][2] is timer

    def cancelled(self) -> None:
        """One more timer was cancelled."""
        with self.lock:
            self._cancelled += 1
            if self._cancelled > 1000 and self._cancelled * 2 > len(self._items):
                self._items = [item for item in self._items if item[2].function is not None]
                heapq.heapify(self._items)
                self._cancelled = 0

    def pop(self, now: float) -> list[tuple[Callable[..., object], tuple[Any, ...]]]:
        """What is due, in order; each is given out once."""
        found = []
        with self.lock:
            while self._items and (self._items[0][0] <= now or self._items[0][2].function is None):
                timer = heapq.heappop(self._items)[2]
                if timer.function is None:
                    self._cancelled = max(0, self._cancelled - 1)
                else:
                    found.append((timer.function, timer.arguments))
                    timer.function = None
        return found

    def next_due(self) -> float | None:
        """When the first one is due."""
        with self.lock:
            return self._first()

    def sleep(self) -> None:
        """Wait until the first one is due, or something new was put in front of it, or `close`."""
        with self.lock:
            due = self._first()
            wait = None if due is None else due - clock.monotonic()
            if not self.closed and (wait is None or wait > 0):
                self.lock.wait(wait)

    def close(self) -> None:
        """End `sleep`, for good."""
        with self.lock:
            self.closed = True
            self.lock.notify_all()

    def _first(self) -> float | None:
        return self._items[0][0] if self._items else None

    def __len__(self) -> int:
        return len(self._items)


class TimerThread:
    """Timers run by a daemon thread, which starts with the first timer and sleeps until the first is due."""

    def __init__(self, name: str = "timers") -> None:
        self._heap = Heap()
        self._name = name
        self._thread: threading.Thread | None = None

    def after(self, seconds: float, function: Callable[..., object], *arguments: Any) -> Timer:
        """Run `function(*arguments)` so many seconds from now, in the timer thread: it must be quick."""
        timer, first = self._heap.push(clock.monotonic() + max(0.0, seconds), function, arguments)
        if first:
            with self._heap.lock:
                if self._thread is None and not self._heap.closed:
                    self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                    self._thread.start()
                self._heap.lock.notify()
        return timer

    def close(self) -> None:
        """Run no more."""
        self._heap.close()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(5.0)

    def _run(self) -> None:
        while not self._heap.closed:
            for function, arguments in self._heap.pop(clock.monotonic()):
                try:
                    function(*arguments)
                except Exception:
                    LOG.exception("a timer's function failed")
            self._heap.sleep()
