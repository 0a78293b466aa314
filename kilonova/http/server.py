"""The HTTP server of one process: waitress in a thread of its own. Nothing of ours depends on which server it is."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from typing import Any

WsgiApp = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]

_PULLED_WITHIN = 5.0  # seconds


class HttpServer:
    """`start` binds and serves; `stop` lets running requests end."""

    def __init__(self, app: WsgiApp, host: str, port: int, threads: int = 8) -> None:
        self.app, self._host, self._port, self._threads = app, host, port, threads
        self._server: Any = None
        self._sockets: dict[int, Any] = {}  # listeners (a name may have several addresses), connections, triggers
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Bind and serve. OSError when the address cannot be had."""
        from waitress.server import create_server

        logging.getLogger("waitress.queue").setLevel(logging.ERROR)  # it warns of each request that waits a moment
        self._server = create_server(
            self.app, map=self._sockets, host=self._host, port=self._port, threads=self._threads, connection_limit=1000,
            asyncore_use_poll=True, outbuf_overflow=16 * 1024**2, max_request_header_size=64 * 1024,
            max_request_body_size=64 * 1024**3, ident=None, clear_untrusted_proxy_headers=False,
        )  # fmt: skip
        self._thread = threading.Thread(target=self._server.run, name="http", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Take no more requests; let the running ones end; close connections that clients have kept open."""
        if self._server is None:
            return
        listeners = _listeners(self._sockets)
        for listener in listeners:
            listener.accepting = False
        self._server.task_dispatcher.shutdown()
        # Its own thread closes what is open, so that it need not wait for it to time out. It may be awake already and
        # come to that before the trigger is pulled, which is closed as well: so it waits for us.
        pulled = threading.Event()

        def close() -> None:
            pulled.wait(_PULLED_WITHIN)
            _close(self._sockets)

        listeners[0].trigger.pull_trigger(close)
        pulled.set()
        if self._thread is not None:
            self._thread.join(timeout=5)
        self._server = None


def _listeners(sockets: dict[int, Any]) -> list[Any]:
    from waitress.server import BaseWSGIServer

    return [one for one in sockets.values() if isinstance(one, BaseWSGIServer)]


def _close(sockets: dict[int, Any]) -> None:
    """In the server's thread, which ends when its last connection is closed."""
    for listener in _listeners(sockets):
        for channel in list(listener.active_channels.values()):
            channel.close_when_flushed = True
        listener.close()
