"""The HTTP server of one process: waitress in a thread of its own. Nothing of ours depends on which server it is."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any

WsgiApp = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


class HttpServer:
    """`start` binds and serves; `stop` lets running requests end."""

    def __init__(self, app: WsgiApp, host: str, port: int, threads: int = 8) -> None:
        self.app, self._host, self._port, self._threads = app, host, port, threads
        self._server: Any = None
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Bind and serve. OSError when the address cannot be had."""
        from waitress.server import create_server

        self._server = create_server(
            self.app, host=self._host, port=self._port, threads=self._threads, connection_limit=1000,
            asyncore_use_poll=True, outbuf_overflow=16 * 1024**2, max_request_header_size=64 * 1024,
            max_request_body_size=64 * 1024**3, ident=None, clear_untrusted_proxy_headers=False,
        )  # fmt: skip
        self._thread = threading.Thread(target=self._server.run, name="http", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Take no more requests; let the running ones end; close connections that clients have kept open."""
        server = self._server
        if server is None:
            return
        server.accepting = False
        server.task_dispatcher.shutdown()
        server.trigger.pull_trigger(lambda: _close(server))  # its own thread does it, so that it need not time out
        if self._thread is not None:
            self._thread.join(timeout=5)
        self._server = None


def _close(server: Any) -> None:
    """In the server's thread, which ends when its last connection is closed."""
    for channel in list(server.active_channels.values()):
        channel.close_when_flushed = True
    server.close()
