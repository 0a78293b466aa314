"""A host's clock that is not right, said in the log."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Final

LOG = logging.getLogger(__name__)

TOLERATED: Final = timedelta(seconds=2)
"""How far a clock may be off before anybody is told."""


class Skew:
    """Says in the log when a clock is off by more than `TOLERATED`, when that changes, and when it is right again."""

    def __init__(self, whose: str, than: str) -> None:
        self._whose, self._than = whose, than
        self._told = timedelta(0)

    def seen(self, ahead: timedelta) -> None:
        """ahead: by how much the clock is before the other; negative when it is behind."""
        if abs(ahead - self._told) <= TOLERATED:
            return
        if abs(ahead) <= TOLERATED:
            LOG.warning("The clock of %s is right again", self._whose)
            self._told = timedelta(0)
            return
        way = "ahead of" if ahead > timedelta(0) else "behind"
        LOG.warning("The clock of %s is %.1f seconds %s %s: set it right, or what other programs on it write down"
                    " has the wrong time", self._whose, abs(ahead.total_seconds()), way, self._than)  # fmt: skip
        self._told = ahead
