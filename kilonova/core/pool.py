"""A few threads that run functions from one queue. They start when there is work, and never for waiting."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, Protocol

from kilonova.core import log
from kilonova.core.context import preserved

LOG = logging.getLogger(__name__)

_Task = tuple[Callable[..., object], tuple[Any, ...]]


class Executor(Protocol):
    """Runs functions some time soon, in any thread; a simulation has one that runs them when told."""

    def submit(self, function: Callable[..., object], *arguments: Any) -> None: ...

    def close(self, seconds: float = 5.0) -> None: ...


class Pool:
    """Up to `size` daemon threads. A function's exception is logged and goes no further.

    service: what the threads work for, as it stands in their log lines; by default the process's.
    """

    def __init__(self, name: str, size: int = 8, *, service: str | None = None) -> None:
        self._name, self._size, self._service = name, size, service
        self._queue: SimpleQueue[_Task | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._idle = 0
        self._closed = False

    def submit(self, function: Callable[..., object], *arguments: Any) -> None:
        """Run `function(*arguments)` in one of the threads. RuntimeError when the pool is closed."""
        with self._lock:
            if self._closed:
                raise RuntimeError(f"pool {self._name} is closed")
            self._queue.put((function, arguments))
            if self._idle > 0:
                self._idle -= 1
            elif len(self._threads) < self._size:
                thread = threading.Thread(
                    target=self._work, name=f"{self._name}-{len(self._threads)}", daemon=True
                )
                self._threads.append(thread)
                thread.start()
            else:
                self._idle -= 1

    def close(self, seconds: float = 5.0) -> None:
        """Let what is queued and running end, waiting so many seconds at most for each thread."""
        with self._lock:
            self._closed = True
            threads = list(self._threads)
        for _ in threads:
            self._queue.put(None)
        for thread in threads:
            if thread is not threading.current_thread():
                thread.join(seconds)

    def _work(self) -> None:
        if self._service is not None:
            log.enter(self._service)
        while (task := self._queue.get()) is not None:
            function, arguments = task
            try:
                with preserved():
                    function(*arguments)
            except Exception:
                LOG.exception("work in pool %s failed", self._name)
            with self._lock:
                self._idle += 1
