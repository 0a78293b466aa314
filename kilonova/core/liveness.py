"""When a service counts as up, and what a host's status is called (workflow facts 12, server view 3)."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

SERVICE_VERSION: Final = 74
"""The version our services report: the release whose behaviour they have (workflow facts 16)."""

_SLACK: Final = 2.5


def down_after(report_interval: float, service_down_time: float) -> float:
    """Seconds of silence after which a service is down: `service_down_time`, raised when beats come more rarely."""
    return service_down_time if report_interval < service_down_time else report_interval * _SLACK


def is_up(last_seen: datetime | None, now: datetime, down_time: float, *, forced_down: bool = False) -> bool:
    """Whether the last heart-beat is fresh (down_time in seconds) and nobody has forced the service down."""
    if forced_down or last_seen is None:
        return False
    return abs(now - last_seen) <= timedelta(seconds=down_time)


def host_status(*, up: bool, disabled: bool, forced_down: bool) -> str:
    """UP, DOWN, MAINTENANCE or UNKNOWN, as servers show it; forced down outranks disabled."""
    if forced_down:
        return "DOWN"
    if disabled:
        return "MAINTENANCE"
    return "UP" if up else "UNKNOWN"
