"""The way of events to compute: a queue and a thread of its own, never the request that caused them.

Delivery is at least once while the process lives; compute takes repeats. After a restart, what was plugged shortly
before is told again, since the queue is not kept: nothing that a building server waits for is lost.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Sequence
from typing import Protocol

import sqlalchemy as sa

from kilonova.core import clock
from kilonova.embedded.network.nouns import Event
from kilonova.embedded.network.ports import event, serves_server
from kilonova.embedded.network.tables import PORTS
from kilonova.sql.engine import Database

LOG = logging.getLogger(__name__)

_BATCH = 100  # events in one POST /os-server-external-events
_KEPT = 20_000  # events that wait at most; the oldest go first
_WAITS = (0.1, 0.3, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0)  # seconds between attempts; then the batch is given up
_RECENT = 600.0  # seconds; longer than vif_plugging_timeout, after which nobody waits any more
_PLUGGED = (
    sa.select(PORTS)
    .where(PORTS.c.status == "ACTIVE", PORTS.c.binding_host_id != "", PORTS.c.device_id != "")
    .where(PORTS.c.updated_at > sa.bindparam("since", type_=PORTS.c.updated_at.type))
    .limit(_KEPT)
)


class Notifier(Protocol):
    """Brings events to compute."""

    def send(self, events: list[Event]) -> None:
        """Deliver all of them; raises when compute did not take them."""
        ...


class Outbox:
    """Events on their way. `put` never waits; `start` and `stop` bound the thread's life."""

    def __init__(self, notifier: Notifier) -> None:
        self._notifier = notifier
        self._waiting: deque[Event] = deque(maxlen=_KEPT)
        self._changed = threading.Condition()
        self._stopping = False
        self._thread: threading.Thread | None = None

    def put(self, events: Sequence[Event]) -> None:
        """Take events for delivery, in order."""
        if not events:
            return
        with self._changed:
            if len(self._waiting) + len(events) > _KEPT:
                LOG.error("Compute does not take events: the oldest of more than %s are dropped", _KEPT)
            self._waiting.extend(events)
            self._changed.notify()

    def start(self, database: Database) -> None:
        """Begin delivering, first of all what was plugged shortly before."""
        with database.read() as c:
            found = [dict(row) for row in c.execute(_PLUGGED, {"since": clock.after(-_RECENT)}).mappings()]
        self.put([event("network-vif-plugged", port) for port in found if serves_server(port)])
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="network-events", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Deliver what is waiting, once, and end the thread."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._waiting and not self._stopping:
                    self._changed.wait()
                batch = [self._waiting.popleft() for _ in range(min(_BATCH, len(self._waiting)))]
            if not batch:
                return
            self._deliver(batch)

    def _deliver(self, batch: list[Event]) -> None:
        for wait in (*_WAITS, None):
            try:
                self._notifier.send(batch)
                return
            except Exception as error:
                if wait is None or self._stopping:
                    LOG.error("Compute did not take %s events, the first %s: %s", len(batch), batch[0], error)
                    return
                LOG.warning("Compute did not take %s events, again in %s s: %s", len(batch), wait, error)
                with self._changed:
                    self._changed.wait_for(lambda: self._stopping, wait)
