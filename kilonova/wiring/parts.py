"""Pieces that every deployment is made of: clients, parts that start and stop, several applications on one port."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from kilonova.clients.accelerators import HttpAccelerators
from kilonova.clients.compute import HttpCompute
from kilonova.clients.identity import HttpIdentity
from kilonova.clients.images import HttpImages
from kilonova.clients.network import HttpNetwork
from kilonova.clients.placement import HttpPlacement
from kilonova.clients.rest import RestClient
from kilonova.clients.volumes import HttpVolumes
from kilonova.core import json
from kilonova.core.metrics import OFF, Meters
from kilonova.http.app import mount
from kilonova.http.server import HttpServer
from kilonova.sql.engine import Database

WsgiApp = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


@dataclass(frozen=True, slots=True)
class Clients:
    """The production clients of one process, all with one user's token."""

    images: HttpImages
    network: HttpNetwork
    volumes: HttpVolumes
    placement: HttpPlacement
    identity: HttpIdentity
    accelerators: HttpAccelerators


def clients_over(rest: Callable[[str], RestClient]) -> Clients:
    """The clients, each over the REST client of its option group."""
    return Clients(
        HttpImages(rest("glance")), HttpNetwork(rest("neutron")), HttpVolumes(rest("cinder")),
        HttpPlacement(rest("placement")), HttpIdentity(rest("keystone")), HttpAccelerators(rest("cyborg")),
    )  # fmt: skip


class Cloud:
    """A whole cloud in this process. `start()` returns when it is ready; `stop()` lets running work end.

    app: everything that it serves, as one WSGI callable; None for a process without an HTTP port.
    reload: reads again what was read at the start, in a process that can.
    """

    def __init__(self, base_url: str, parts: list[Any], databases: list[Database], http: HttpServer | None) -> None:
        self.base_url, self.app = base_url, http.app if http is not None else None
        self._parts, self._databases, self._http = parts, databases, http
        self._started: list[Any] = []
        self.ready = False
        self.reload: Callable[[], None] | None = None

    def start(self, *, listen: bool = True) -> None:
        """Listen first, so that a taken port is found before anything runs; then start the parts in order.

        Without `listen` the cloud is served by `app` alone, for a process with an HTTP server of its own.
        """
        if listen and self._http is not None:
            self._http.start()
        for part in self._parts:
            self._started.append(part)
            part.start()
        self.ready = True

    def stop(self) -> None:
        """Stop what was started, last first."""
        self.ready = False
        if self._http is not None:
            self._http.stop()
        for part in reversed(self._started):
            part.stop()
        self._started = []
        for database in self._databases:
            database.dispose()


@dataclass(frozen=True, slots=True)
class Part:
    """Something with a start and a stop of other names."""

    start: Callable[[], Any]
    stop: Callable[[], Any]


def process(parts: list[Any], databases: list[Database], reload: Callable[[], None] | None = None) -> Cloud:
    """A process without an HTTP port."""
    made = Cloud("", parts, databases, None)
    made.reload = reload
    return made


class Later:
    """A WSGI callable that is known only after its callers were made."""

    def __init__(self) -> None:
        self.app: WsgiApp | None = None

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        assert self.app is not None
        return self.app(environ, start_response)


class EventsToCompute:
    """The network service's notifier: the compute API, as any Neutron would call it."""

    def __init__(self, compute: HttpCompute) -> None:
        self._compute = compute

    def send(self, events: list[dict[str, Any]]) -> None:
        """Deliver all of them; raises when compute did not take them."""
        self._compute.external_events(events)


def mounted(
    apps: Mapping[str, WsgiApp], ready: Callable[[], bool], otherwise: WsgiApp | None = None, meters: Meters = OFF
) -> WsgiApp:
    services = sorted(apps)

    def fallback(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        path = environ.get("PATH_INFO", "")
        if path == "/healthz":
            if ready():
                return answer(start_response, "200 OK", {"status": "ok"})
            return answer(start_response, "503 Service Unavailable", {"status": "starting or stopping"})
        if path == "/metrics" and meters.on:
            return meters(environ, start_response)
        if otherwise is not None:
            return otherwise(environ, start_response)
        if path in ("", "/"):
            host = f"{environ['wsgi.url_scheme']}://{environ.get('HTTP_HOST', '')}"
            return answer(start_response, "200 OK", {"services": {name: f"{host}/{name}" for name in services}})
        return answer(start_response, "404 Not Found", {
            "error": {"code": 404, "title": "Not Found", "message": f"There is no service at {path}; there are: "
                      + ", ".join(f"/{name}" for name in services)}})  # fmt: skip

    app: WsgiApp = mount(dict(apps), fallback)
    return app


def answer(start_response: Callable[..., Any], status: str, document: dict[str, Any]) -> Iterable[bytes]:
    body = json.dumps(document)
    start_response(status, [("Content-Type", "application/json"), ("Content-Length", str(len(body)))])
    return (body,)
