"""Buses of a deployment of cells: the region's, one per cell, and for every message the one that leads to it.

Knows of a message only where it says which cell it is for. Cells whose address is the region's share its bus.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping

from kilonova.bus import calls
from kilonova.bus.bus import Bus, Handler, NobodyServes
from kilonova.bus.calls import Call, Events, Rep, Req
from kilonova.cells.cells import API
from kilonova.core.context import Context


class CellBuses:
    """A Bus that routes. `serve` is that of `own`: a process serves only where it lives.

    open_bus opens the bus of an address, again at the next message when it raises. address_of is the transport URL of a
    cell, or of the region for `api`; None where that is the own one. cell_of_agent says in which cell an agent is.
    """

    def __init__(
        self, own: Bus, open_bus: Callable[[str], Bus], address_of: Callable[[str], str | None],
        cell_of_agent: Callable[[str], str | None],
    ) -> None:  # fmt: skip
        self._own, self._open = own, open_bus
        self._address_of, self._cell_of_agent = address_of, cell_of_agent
        self._lock = threading.Lock()
        self._opening: dict[str, threading.Lock] = {}
        self._opened: dict[str, Bus] = {}

    def connect(self) -> None:
        """Connect the own one; another is opened by the first message to it."""
        self._own.connect()

    def call(self, row: Call[Req, Rep], request: Req, *, to: str = "", ctx: Context | None = None) -> Rep:
        """Ask whoever serves the row where the message belongs."""
        return self._route(row, request, to).call(row, request, to=to, ctx=ctx)

    def cast(self, row: Call[Req, Rep], request: Req, *, to: str = "", ctx: Context | None = None) -> None:
        """Send to where the message belongs; events of several cells go to each its own."""
        if isinstance(request, Events):
            for cell in dict.fromkeys(event.database for event in request.events):
                own = Events(tuple(event for event in request.events if event.database == cell))
                self.of(cell).cast(calls.deliver_events, own, to=to, ctx=ctx)
            return
        self._route(row, request, to).cast(row, request, to=to, ctx=ctx)

    def serve(self, topic: str, handlers: Mapping[str, Handler], *, address: str = "") -> Callable[[], None]:
        """Serve on the bus of this process's own place."""
        return self._own.serve(topic, handlers, address=address)

    def close(self) -> None:
        """Close all of them."""
        for bus in (*self._opened.values(), self._own):
            bus.close()

    def of(self, database: str) -> Bus:
        """The bus of the conductors of a database: `api`, or a cell's uuid."""
        address = self._address_of(database)
        if address is None:
            return self._own
        with self._lock:
            opening = self._opening.setdefault(address, threading.Lock())
        with opening:  # which takes seconds where a broker is away; other cells do not wait for it
            if address not in self._opened:
                self._opened[address] = self._open(address)
            return self._opened[address]

    def opened(self) -> Iterable[str]:
        """The addresses that are open beside the own one."""
        return tuple(self._opened)

    def _route(self, row: Call[Req, Rep], request: Req, to: str) -> Bus:
        database = getattr(request, "database", None)
        if database is None:
            database = getattr(getattr(request, "ticket", None), "database", None)
        if database is not None:
            return self.of(database)
        if row.topic == "agent":
            cell = self._cell_of_agent(to)
            if cell is None:
                raise NobodyServes(topic=row.topic, address=to)
            return self.of(cell)
        return self.of(API) if row.topic == "scheduler" else self._own
