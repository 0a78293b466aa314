"""Time, replaceable as a whole: a simulation installs its own clock and every module follows.

Wall-clock times are naive datetimes in UTC with microseconds, as the tables and the API have them.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    """Where time comes from."""

    def utcnow(self) -> datetime:
        """Now, naive, in UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds from an arbitrary start, never going back."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait so many seconds."""
        ...


class SystemClock:
    """The machine's clock."""

    def utcnow(self) -> datetime:
        return datetime.now(UTC).replace(tzinfo=None)

    def monotonic(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


_clock: Clock = SystemClock()


def install(clock: Clock) -> Clock:
    """Make `clock` the source of time for the process; answers the one it replaces."""
    global _clock
    previous, _clock = _clock, clock
    return previous


def utcnow() -> datetime:
    """Now, naive, in UTC."""
    return _clock.utcnow()


def monotonic() -> float:
    """Seconds from an arbitrary start."""
    return _clock.monotonic()


def sleep(seconds: float) -> None:
    """Wait so many seconds."""
    _clock.sleep(seconds)


def after(seconds: float) -> datetime:
    """The time so many seconds from now."""
    return utcnow() + timedelta(seconds=seconds)


def iso_z(moment: datetime | None) -> str | None:
    """`YYYY-MM-DDTHH:MM:SSZ`, without a fraction (servers, faults, images)."""
    return None if moment is None else moment.replace(microsecond=0).isoformat() + "Z"


def raw(moment: datetime | None) -> str | None:
    """`YYYY-MM-DDTHH:MM:SS.ffffff` without a zone (everything that is not `iso_z`)."""
    return None if moment is None else moment.isoformat(timespec="microseconds")
