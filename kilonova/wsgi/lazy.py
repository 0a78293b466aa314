"""A WSGI callable that is built from the configuration file at its first request, in the process that serves it.

Servers fork their workers, and connections must not be shared over a fork; so importing opens nothing. But all modules
are imported with the entry point, by the worker's main thread: the library of the broker loads a second copy of
`threading`, after which the thread that did so can never be joined, and a worker that joins its threads never ends.
"""

from __future__ import annotations

import importlib
import logging
import os
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from kilonova.conf.load import ConfigError, load, warn_without_effect
from kilonova.core import errors, log
from kilonova.http.busy import RETRY_AFTER
from kilonova.sql.engine import unreachable
from kilonova.sql.reach import reason

LOG = logging.getLogger(__name__)

WsgiApp = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]

VARIABLE: Final = "KILONOVA_CONFIG"
DEFAULT_FILE: Final = "/etc/kilonova/kilonova.conf"


def import_bus() -> None:
    """Import what a broker takes, where it is installed."""
    with suppress(ModuleNotFoundError):
        importlib.import_module("kilonova.bus.amqp")


class Lazy:
    """The callable. It answers 503 as long as what it needs is not there, and tries again at each request.

    build: from the loaded configuration. application: whose options those are.
    """

    def __init__(self, name: str, build: Callable[[Any], WsgiApp], *, application: str = "compute") -> None:
        self._name, self._build, self._application = name, build, application
        self._lock = threading.Lock()
        self._built: tuple[int, WsgiApp] | None = None

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        try:
            app = self._app()
        except Exception as error:
            return _refuse(self._name, error, start_response)
        return app(environ, start_response)

    def _app(self) -> WsgiApp:
        built = self._built
        if built is not None and built[0] == os.getpid():
            return built[1]
        with self._lock:
            if self._built is None or self._built[0] != os.getpid():
                self._built = os.getpid(), self._make()
            return self._built[1]

    def _make(self) -> WsgiApp:
        files = [Path(name) for name in os.environ.get(VARIABLE, DEFAULT_FILE).split(os.pathsep) if name]
        conf = load(files, application=self._application, warn=False)
        log.setup(conf, f"kilonova-{self._name}")
        logging.logProcesses = logging.logThreads = True  # the server's own lines may want them
        warn_without_effect(files, application=self._application)
        app = self._build(conf)
        LOG.info("Process %s serves %s", os.getpid(), self._name)
        return app


def _refuse(name: str, error: Exception, start_response: Callable[..., Any]) -> Iterable[bytes]:
    """The reason is for the log; a stranger is not told where databases are."""
    if isinstance(error, ConfigError | errors.KilonovaError):
        LOG.error("%s cannot serve: %s", name, error)
    elif unreachable(error):
        LOG.error("%s cannot serve: the database does not answer: %s", name, reason(error))
    else:
        LOG.error("%s cannot serve", name, exc_info=error)
    body = b"The service is not ready.\n"
    start_response("503 Service Unavailable", [
        ("Content-Type", "text/plain"), ("Content-Length", str(len(body))), *RETRY_AFTER,
    ])  # fmt: skip
    return (body,)
