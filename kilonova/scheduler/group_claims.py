"""Members of server groups that were claimed a moment ago and whose rows do not name a host yet.

Two requests for one group must see each other although the first is still being built: in this process they take
turns, and what one was given is remembered. Between processes the check when the build begins has the last word.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta

from kilonova.core import clock

REMEMBERED = timedelta(seconds=60)
"""After this time the rows have the say: the server is there, or its build failed."""


class _Turn:
    """Whose turn it is with one group, and how many have it or wait for it."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.waiting = 0


class GroupClaims:
    """Recent placements by group. Safe from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._placed: dict[str, dict[str, tuple[str, datetime]]] = {}
        self._turns: dict[str, _Turn] = {}

    @contextmanager
    def turn(self, group: str) -> Iterator[None]:
        """Alone with the group until the end of the block; others wait."""
        with self._lock:
            turn = self._turns.setdefault(group, _Turn())
            turn.waiting += 1
        try:
            with turn.lock:
                yield
        finally:
            with self._lock:
                turn.waiting -= 1
                if not turn.waiting:
                    del self._turns[group]

    def note(self, group: str, winners: Mapping[str, str]) -> None:
        """These servers of the group were claimed on these hosts."""
        now = clock.utcnow()
        with self._lock:
            self._forget(now)
            self._placed.setdefault(group, {}).update({server: (host, now) for server, host in winners.items()})

    def recent(self, group: str) -> dict[str, str]:
        """Server to host, of what was noted lately."""
        oldest = clock.utcnow() - REMEMBERED
        with self._lock:
            return {server: host for server, (host, at) in self._placed.get(group, {}).items() if at >= oldest}

    def _forget(self, now: datetime) -> None:
        oldest = now - REMEMBERED
        for group, placed in list(self._placed.items()):
            kept = {server: row for server, row in placed.items() if row[1] >= oldest}
            if kept:
                self._placed[group] = kept
            else:
                del self._placed[group]
