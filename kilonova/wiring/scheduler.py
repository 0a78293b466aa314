"""A scheduler as a process of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kilonova.bus.bus import Bus
from kilonova.cells.discovery import Discovery
from kilonova.conductor.heartbeat import SCHEDULER, Heartbeat
from kilonova.conf import databases
from kilonova.core import liveness
from kilonova.db.prepare import require_cell
from kilonova.scheduler.surroundings import Others
from kilonova.wiring.deciding import deciding
from kilonova.wiring.first_look import look
from kilonova.wiring.parts import Cloud, Part, process
from kilonova.wiring.region import region


def scheduler(conf: Any, instance: int = 1) -> Cloud:
    """A scheduler; any number may share the work."""
    ground = region(conf)
    first = next(iter(ground.cells), None)
    try:
        if first is not None:
            require_cell(first.database)
    except BaseException:
        ground.close()
        raise
    me = conf.host if instance == 1 else f"{conf.host}:{instance}"
    others = Others(ground.clients.identity, ground.clients.network, ground.clients.placement)
    scheduling = deciding(conf, ground.cells, ground.clients.placement, others, me)
    serving = _Serving(ground.bus, "scheduler", scheduling.handlers)
    placement = ground.clients.placement
    parts: list[Any] = [Part(ground.bus.connect, ground.leave), Part(lambda: look(placement), _nothing)]
    parts += [*scheduling.parts, serving]
    if first is not None:
        parts.append(Heartbeat(first.database, me, SCHEDULER, conf.report_interval))
    if (interval := conf.scheduler.discover_hosts_in_cells_interval) > 0:
        down_time = liveness.down_after(conf.report_interval, conf.service_down_time)
        opener = databases.opener(conf)
        parts.append(Discovery(ground.cells, opener, me, interval=interval, down_time=down_time))
    return process(parts, ground.databases, scheduling.reload)


def _nothing() -> None:
    """What is looked at once needs no end."""


class _Serving:
    """Rows served on a bus between start and stop."""

    def __init__(self, bus: Bus, topic: str, handlers: dict[str, Any]) -> None:
        self._bus, self._topic, self._handlers = bus, topic, handlers
        self._end: Callable[[], None] | None = None

    def start(self) -> None:
        """Begin to serve."""
        self._end = self._bus.serve(self._topic, self._handlers)

    def stop(self) -> None:
        """Serve no more."""
        if self._end is not None:
            self._end()
