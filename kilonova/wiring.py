"""The only place that chooses real, embedded, local or remote. Everything else is one code path.

`all_in_one` builds a whole cloud in this process: SQLite files, a bus of threads, the embedded services, simulated
hypervisors, and one HTTP port. Calls between our own parts go through the production clients and never through the
socket.
"""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kilonova.agent.service import Agent
from kilonova.agent.settings import AgentSettings
from kilonova.api.compute.app import make_app as compute_app
from kilonova.bus.local import LocalBus
from kilonova.cells.cells import Cells
from kilonova.clients import auth as client_auth
from kilonova.clients.compute import HttpCompute
from kilonova.clients.identity import HttpIdentity
from kilonova.clients.images import HttpImages
from kilonova.clients.network import HttpNetwork
from kilonova.clients.placement import HttpPlacement
from kilonova.clients.rest import RestClient
from kilonova.clients.volumes import HttpVolumes
from kilonova.compute import settings as compute_settings
from kilonova.compute.bootstrap import bootstrap_cells, bootstrap_flavors
from kilonova.compute.world import World
from kilonova.conductor.heartbeat import CONDUCTOR, SCHEDULER, Heartbeat
from kilonova.conductor.reports import AgentReports, NewHosts
from kilonova.conductor.service import Conductor
from kilonova.conf.all_in_one import AllInOne
from kilonova.conf.load import load, warn_without_effect
from kilonova.core import json, liveness, log
from kilonova.db import api_schema, cell_schema
from kilonova.db.queries.hosts import AgentDirectory
from kilonova.embedded.identity import app as identity
from kilonova.embedded.identity.bootstrap import bootstrap as bootstrap_identity
from kilonova.embedded.images import app as images
from kilonova.embedded.images.bootstrap import bootstrap as bootstrap_images
from kilonova.embedded.network import app as network
from kilonova.embedded.network.topology import bootstrap as bootstrap_network
from kilonova.embedded.volumes import app as volumes
from kilonova.http import middleware
from kilonova.http.app import mount
from kilonova.http.auth import Auth
from kilonova.http.policy import Policy, compute_rules
from kilonova.http.transport import RoutedTransport, SocketTransport, WsgiTransport
from kilonova.placement import app as placement
from kilonova.placement.store.prepare import prepare as prepare_placement
from kilonova.scheduler import settings as scheduler_settings
from kilonova.scheduler.service import Scheduler
from kilonova.sql.engine import Database
from kilonova.sql.migrate import prepare
from kilonova.virt.simulated import SimulatedDriver, SimulatedSettings
from kilonova.workflows.catalogue import WORKFLOWS, recorder

LOG = logging.getLogger(__name__)

WsgiApp = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]

_READY_WITHIN = 30.0  # seconds that the first hosts may take to be known before the start gives up waiting


@dataclass(frozen=True, slots=True)
class Clients:
    """The production clients of one process, all with one user's token."""

    images: HttpImages
    network: HttpNetwork
    volumes: HttpVolumes
    placement: HttpPlacement
    identity: HttpIdentity


class Cloud:
    """A whole cloud in this process. `start()` returns when it is ready; `stop()` lets running work end.

    app: everything that it serves, as one WSGI callable.
    """

    def __init__(self, base_url: str, parts: list[Any], databases: list[Database], http: HttpServer) -> None:
        self.base_url, self.app = base_url, http.app
        self._parts, self._databases, self._http = parts, databases, http
        self._started: list[Any] = []

    def start(self, *, listen: bool = True) -> None:
        """Listen first, so that a taken port is found before anything runs; then start the parts in order.

        Without `listen` the cloud is served by `app` alone, for a process with an HTTP server of its own.
        """
        if listen:
            self._http.start()
        for part in self._parts:
            self._started.append(part)
            part.start()

    def stop(self) -> None:
        """Stop what was started, last first."""
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


class HttpServer:
    """waitress in a thread of its own; the one place that knows which server it is."""

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
        """Take no more requests; let the running ones end."""
        if self._server is not None:
            self._server.close()
            self._server.task_dispatcher.shutdown()
            if self._thread is not None:
                self._thread.join(timeout=5)
            self._server = None


class _Later:
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


def all_in_one(settings: AllInOne) -> Cloud:
    """The cloud that `kilonova up` runs; nothing of it is started yet. ConfigError for a bad configuration."""
    conf = load(settings.config_files, _overrides(settings), warn=False)
    log.setup(conf, "kilonova")
    warn_without_effect(settings.config_files)
    base = settings.base_url
    root = _Later()
    transport = RoutedTransport({base: WsgiTransport(root)}, SocketTransport())
    files = _Files(settings.database_dir)

    people = identity.make_identity(files.open("identity"))
    bootstrap_identity(
        people, admin_password=settings.secrets.admin_password, demo_password=settings.secrets.demo_password,
        alt_demo_password=settings.secrets.alt_demo_password, service_password=settings.secrets.service_password,
        base_url=base, reset_admin=settings.reset_admin,
    )  # fmt: skip
    identity_url = f"{base}/identity"
    auth = Auth(conf, transport, _credentials(settings, identity_url, "nova"))
    people.on_revoke(lambda _: auth.forget_all())
    policy = Policy(compute_rules(), conf)

    def behind(service: str, *, limit_body: bool = True) -> Callable[[WsgiApp], WsgiApp]:
        options = middleware.settings(conf, limit_body=limit_body)
        return lambda app: middleware.pipeline(app, service=service, settings=options, auth=auth, policy=policy)

    clients = _clients(conf, transport, settings, identity_url)
    bus = LocalBus()
    cells, cell1 = _cells(files)
    directory = AgentDirectory(lambda: [cell.database for cell in cells], _down_after(conf))
    world = World(
        cells=cells, bus=bus, settings=compute_settings.from_conf(conf), images=clients.images,
        network=clients.network, volumes=clients.volumes, placement=clients.placement, identity=clients.identity,
        agent_of=directory.agent_of,
    )  # fmt: skip
    projects = {row["name"]: row["id"] for row in _projects(people)}
    pictures = images.make_world(files.open("images"), settings.image_dir)
    bootstrap_images(pictures, owner=projects["admin"])
    notifier = EventsToCompute(HttpCompute(RestClient(
        "compute", f"{base}/compute/v2.1", transport,
        client_auth.password_tokens(transport, **_login(settings, identity_url, "neutron")), microversion="compute",
    )))  # fmt: skip
    net = network.make_app(files.open("network"), notifier=notifier)
    bootstrap_network(
        net.database, admin_project=projects["admin"], demo_project=projects["demo"],
        private_cidr=settings.private_cidr, public_cidr=settings.public_cidr,
    )  # fmt: skip
    disks = volumes.make_app(files.open("volumes"), images=lambda ctx, image: clients.images.as_user(ctx).show(image))
    room = files.open("placement")
    prepare_placement(room)
    capacity = placement.make_app(room, auth_uri=identity_url)
    root.app = _mounted({
        "identity": middleware.pipeline(
            identity.make_app(people, identity_url), service="identity", settings=middleware.settings(conf)),
        "compute": compute_app(world, policy, auth_uri=identity_url, behind=behind("compute")),
        "placement": behind("placement")(capacity),
        "image": behind("image", limit_body=False)(images.make_app(pictures, identity_url)),
        "networking": behind("network")(net),
        "volume": behind("volume")(disks),
    })  # fmt: skip

    scheduler = Scheduler(cells, clients.placement, scheduler_settings.from_conf(conf))
    conductor = Conductor(world, WORKFLOWS, recorder(), me=f"{conf.host}", host=conf.host)
    reports = AgentReports(
        cells.database(cell1), cells.api, cell1, bus, NewHosts.from_conf(conf, all_in_one=True),
        conductor.agent_seen, directory,
    )  # fmt: skip
    driver = SimulatedDriver(str(settings.state_dir / "guests.db"), settings=SimulatedSettings.from_conf(conf))
    agent = Agent("all-in-one", bus, driver, clients.placement, AgentSettings.from_conf(conf), settings.state_dir)
    parts = [
        Heartbeat(cells.database(cell1), conf.host, CONDUCTOR | SCHEDULER, conf.report_interval),
        Part(lambda: bus.serve("scheduler", {
            "select_destinations": scheduler.select_destinations, "hosts_changed": scheduler.hosts_changed,
        }), bus.close),
        Part(lambda: conductor.start(bus, reports.handlers()), conductor.close),
        net,
        Part(lambda: _start_agent(agent), lambda: _stop_agent(agent, driver)),
    ]  # fmt: skip
    return Cloud(base, parts, files.opened, HttpServer(root, settings.host, settings.port))


def _start_agent(agent: Agent) -> None:
    agent.start()
    if not agent.wait_ready(_READY_WITHIN):
        LOG.warning("The simulated hypervisors are not all known after %s seconds", _READY_WITHIN)


def _stop_agent(agent: Agent, driver: SimulatedDriver) -> None:
    agent.stop()
    driver.close()


def _down_after(conf: Any) -> float:
    return liveness.down_after(conf.report_interval, conf.service_down_time)


def _overrides(settings: AllInOne) -> dict[str, Any]:
    return {
        "log_file": str(settings.log_file),
        "simulated.hosts": settings.hosts,
        "host": socket.gethostname(),
        "my_ip": "127.0.0.1",
    }


def _login(settings: AllInOne, identity_url: str, username: str) -> dict[str, str]:
    return {
        "auth_url": identity_url, "username": username, "password": settings.secrets.service_password,
        "project_name": "service",
    }  # fmt: skip


def _credentials(settings: AllInOne, identity_url: str, username: str) -> dict[str, str]:
    return _login(settings, identity_url, username) | {
        "auth_type": "password", "user_domain_id": "default", "project_domain_id": "default",
        "www_authenticate_uri": identity_url,
    }  # fmt: skip


def _clients(conf: Any, transport: RoutedTransport, settings: AllInOne, identity_url: str) -> Clients:
    tokens = client_auth.password_tokens(transport, **_login(settings, identity_url, "nova"))

    def rest(group: str) -> RestClient:
        return client_auth.rest_client(conf, group, transport, tokens)

    return Clients(
        HttpImages(rest("glance")), HttpNetwork(rest("neutron")), HttpVolumes(rest("cinder")),
        HttpPlacement(rest("placement")), HttpIdentity(rest("keystone")),
    )  # fmt: skip


def _projects(people: Any) -> list[dict[str, Any]]:
    from kilonova.embedded.identity.tables import PROJECTS

    with people.database.read() as connection:
        return list(PROJECTS.find(connection))


class _Files:
    """SQLite files in a directory, one per service, each opened once."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self.opened: list[Database] = []

    def url(self, name: str) -> str:
        """The address of a file."""
        return f"sqlite:///{self._directory / name}.db"

    def open(self, name: str) -> Database:
        """The database of a file."""
        return self.at(self.url(name))

    def at(self, url: str) -> Database:
        """The database of an address."""
        database = Database(url)
        self.opened.append(database)
        return database


def _cells(files: _Files) -> tuple[Cells, str]:
    api = files.open("api")
    prepare(api, api_schema.metadata, "kilonova.db.migrations.api")
    cell1 = bootstrap_cells(api, files.url("cell0"), files.url("cell1"), "local:///")
    bootstrap_flavors(api)
    cells = Cells(api, files.at)
    for cell in cells.every():
        prepare(cell.database, cell_schema.metadata, "kilonova.db.migrations.cell")
    return cells, cell1


def _mounted(apps: Mapping[str, WsgiApp]) -> WsgiApp:
    services = sorted(apps)

    def fallback(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        path = environ.get("PATH_INFO", "")
        if path == "/healthz":
            return _json(start_response, "200 OK", {"status": "ok"})
        if path in ("", "/"):
            host = f"{environ['wsgi.url_scheme']}://{environ.get('HTTP_HOST', '')}"
            return _json(start_response, "200 OK", {"services": {name: f"{host}/{name}" for name in services}})
        return _json(start_response, "404 Not Found", {
            "error": {"code": 404, "title": "Not Found", "message": f"There is no service at {path}; there are: "
                      + ", ".join(f"/{name}" for name in services)}})  # fmt: skip

    mounted: WsgiApp = mount(dict(apps), fallback)
    return mounted


def _json(start_response: Callable[..., Any], status: str, document: dict[str, Any]) -> Iterable[bytes]:
    body = json.dumps(document)
    start_response(status, [("Content-Type", "application/json"), ("Content-Length", str(len(body)))])
    return (body,)
