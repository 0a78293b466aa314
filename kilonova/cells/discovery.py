"""New hosts taken into their cells from time to time (`[scheduler]discover_hosts_in_cells_interval`).

Every scheduler has this, and the first by name of those that are up does it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from kilonova.cells import registry
from kilonova.cells.cells import Cell, Cells
from kilonova.core import clock
from kilonova.db.queries import services
from kilonova.sql.engine import Database

LOG = logging.getLogger(__name__)

_SCHEDULER: Final = "nova-scheduler"


class Discovery:
    """Looks every `interval` seconds, between `start` and `stop`.

    me: the scheduler's name in the services table. down_time: seconds of silence after which another is down.
    """

    def __init__(
        self, cells: Cells, open_database: Callable[[str], Database], me: str, *, interval: float, down_time: float
    ) -> None:
        self._cells, self._open, self._me = cells, open_database, me
        self._interval, self._down_time = interval, down_time
        self._warned = False
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin to look."""
        self._stopping.clear()
        self._thread = threading.Thread(target=self._loop, name="discovery", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Look no more."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(timeout=10)

    def look(self) -> None:
        """Map what has reported and is in no cell yet, unless another scheduler is to do it."""
        if not self._is_first():
            return
        self._cells.refresh()
        found: list[registry.Found] = []
        for cell in self._cells:
            with _tolerated(cell):
                found += registry.discover(self._cells.api, self._open, cell.uuid)
        if mapped := [f"{row.name or row.uuid}:{host}" for row in found for host in row.mapped]:
            LOG.info("Discovered %d new hosts: %s", len(mapped), ", ".join(mapped))
        for row in found:
            for host, other in sorted(row.elsewhere.items()):
                text = "Host %s reports in cell %s and is mapped to cell %s: it stays there"
                LOG.log(logging.DEBUG if self._warned else logging.WARNING, text, host, row.uuid, other)
                self._warned = True

    def _is_first(self) -> bool:
        up = {self._me}
        for cell in self._cells:
            with _tolerated(cell), cell.database.read() as connection:
                rows = services.list_services(connection, binary=_SCHEDULER)
                up |= {row.host for row in rows if row.up(clock.utcnow(), self._down_time)}
        return min(up) == self._me

    def _loop(self) -> None:
        while not self._stopping.wait(self._interval):
            try:
                self.look()
            except Exception:
                LOG.exception("New hosts could not be looked for")


@contextmanager
def _tolerated(cell: Cell) -> Iterator[None]:
    """A cell that cannot be read is warned of, and the others are looked at."""
    try:
        yield
    except Exception as error:
        LOG.warning("New hosts of cell %s could not be looked for: %s", cell.name or cell.uuid, error)
