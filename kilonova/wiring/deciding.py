"""The scheduler with what keeps its decisions and tells of them, as every process that schedules has it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from kilonova.bus import notifications
from kilonova.cells.cells import Cells
from kilonova.db.queries import requests
from kilonova.scheduler import settings as scheduler_settings
from kilonova.scheduler.notices import Notices
from kilonova.scheduler.recorder import Kept, Recorder
from kilonova.scheduler.service import Scheduler
from kilonova.scheduler.surroundings import Others
from kilonova.scheduler.trace import Ring


@dataclass(frozen=True)
class Deciding:
    """handlers: the rows of the bus. parts: what is started before them. reload: reads cells and hosts again."""

    handlers: dict[str, Any]
    parts: tuple[Any, ...]
    reload: Callable[[], None]


def deciding(conf: Any, cells: Cells, placement: Any, others: Others, me: str) -> Deciding:
    """A scheduler that is known as `me`."""
    kept = Kept.from_conf(conf)
    recorder = Recorder(cells.api, kept, me) if kept.number else None
    told = notifications.from_conf(conf)
    scheduler = Scheduler(
        cells, placement, scheduler_settings.from_conf(conf), partial(requests.unwanted, cells.api),
        traces=recorder if recorder is not None else Ring(0), others=others, notices=Notices(told, me),
    )  # fmt: skip
    handlers: dict[str, Any] = {
        "select_destinations": scheduler.select_destinations,
        "hosts_changed": scheduler.hosts_changed,
        "simulate_request": scheduler.simulate,
        "measure_capacity": scheduler.capacity,
    }

    def reload() -> None:
        cells.refresh()
        scheduler.reload()

    return Deciding(handlers, (*((recorder,) if recorder is not None else ()), told), reload)
