"""The service rows of our own processes (nova-conductor, nova-scheduler …): one statement a process and interval."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping

from kilonova.core.liveness import SERVICE_VERSION
from kilonova.db.queries import services
from kilonova.sql.engine import Database

LOG = logging.getLogger(__name__)

CONDUCTOR = {"nova-conductor": "conductor"}
SCHEDULER = {"nova-scheduler": "scheduler"}


class Heartbeat:
    """`binaries` maps each service of this process to its topic; report_interval in seconds.

    `start()` registers the rows and begins to beat; a row deleted through the API comes back with the next start.
    """

    def __init__(self, cell: Database, host: str, binaries: Mapping[str, str], report_interval: float = 10) -> None:
        self._cell, self._host, self._binaries, self._interval = cell, host, dict(binaries), report_interval
        self._rows: tuple[int, ...] = ()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Make or refresh the rows, then beat in the background."""
        self._rows = services.register_own(self._cell, self._host, self._binaries, SERVICE_VERSION)
        self._thread = threading.Thread(target=self._loop, name="heartbeat", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Beat no more; the services are seen as down after `service_down_time`."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(timeout=10)

    def beat(self) -> None:
        """One beat of all rows."""
        services.beat_own(self._cell, self._rows)

    def _loop(self) -> None:
        while not self._stopping.wait(self._interval):
            try:
                self.beat()
            except Exception:
                LOG.exception("The heart-beat of %s on %s failed", ", ".join(self._binaries), self._host)
