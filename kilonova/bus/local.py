"""The bus inside one process: calls run in the caller's thread, casts in a small pool.

Everything is encoded and decoded as for a broker, so nothing works by sharing an object. It knows of no service and
of no handler beyond their names. A call is refused while a write transaction is open on the thread: over a broker it
would hold locks for as long as the other side likes.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from kilonova.bus import codec
from kilonova.bus.answer import answer, checked
from kilonova.bus.bus import Handler, NobodyServes
from kilonova.bus.calls import Call, Rep, Req
from kilonova.core.context import Context, current
from kilonova.core.pool import Executor, Pool
from kilonova.sql.engine import transaction_open


@dataclass(frozen=True, slots=True, eq=False)
class _Server:
    topic: str
    address: str
    handlers: Mapping[str, Handler]


class LocalBus:
    """See `bus.Bus`. Several servers of one topic take turns with what is sent to no address."""

    def __init__(self, pool: Executor | None = None) -> None:
        self._pool: Executor = pool or Pool("bus")
        self._lock = threading.Lock()
        self._servers: tuple[_Server, ...] = ()
        self._turn = itertools.count()

    def connect(self) -> None:
        """There is nothing to connect to."""

    def call(self, row: Call[Req, Rep], request: Req, *, to: str = "", ctx: Context | None = None) -> Rep:
        """Run the handler here and now. Raises its domain error, NobodyServes, RuntimeError inside a transaction."""
        if row.kind != "call":
            raise TypeError(f"{row.name} is cast, not called")
        if transaction_open():
            raise RuntimeError(f"call {row.name} inside a write transaction")
        data = codec.encode_request(row, request, ctx or current())
        return cast(Rep, codec.decode_reply(row, answer(row.topic, self._find(row, to), data)))

    def cast(self, row: Call[Req, Rep], request: Req, *, to: str = "", ctx: Context | None = None) -> None:
        """Run the handler in the pool. NobodyServes when there is none."""
        if row.kind != "cast":
            raise TypeError(f"{row.name} is called, not cast")
        data = codec.encode_request(row, request, ctx or current())
        self._pool.submit(answer, row.topic, self._find(row, to), data)

    def serve(self, topic: str, handlers: Mapping[str, Handler], *, address: str = "") -> Callable[[], None]:
        """Handle rows of a topic. ValueError for a name that is no row of it, or an address that is taken."""
        server = _Server(topic, address, checked(topic, handlers))
        with self._lock:
            if address and any(s.topic == topic and s.address == address for s in self._servers):
                raise ValueError(f"somebody serves {topic} at {address} already")
            self._servers = (*self._servers, server)
        return lambda: self._withdraw(server)

    def close(self) -> None:
        """Let running and queued casts end, then stop."""
        self._pool.close()
        with self._lock:
            self._servers = ()

    def _withdraw(self, server: _Server) -> None:
        with self._lock:
            self._servers = tuple(other for other in self._servers if other is not server)

    def _find(self, row: Call[Any, Any], to: str) -> Mapping[str, Handler]:
        able = [
            server.handlers
            for server in self._servers
            if server.topic == row.topic and row.name in server.handlers and (not to or server.address == to)
        ]
        if not able:
            raise NobodyServes(topic=row.topic, address=to or "its topic")
        return able[next(self._turn) % len(able)]
