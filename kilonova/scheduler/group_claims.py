"""Members of server groups that were claimed a moment ago and whose rows do not name a host yet.

Two requests for one group, one after the other, must see each other although the first is still being built.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from datetime import datetime, timedelta

from kilonova.core import clock

REMEMBERED = timedelta(seconds=60)
"""After this time the rows have the say: the server is there, or its build failed."""


class GroupClaims:
    """Recent placements by group. Safe from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._placed: dict[str, dict[str, tuple[str, datetime]]] = {}

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
