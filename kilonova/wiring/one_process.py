"""A whole cloud in this process: SQLite files, a bus of threads, embedded services, simulated hypervisors, one port.

Calls between our own parts go through the production clients and never through the socket.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Iterable
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
from kilonova.clients.rest import RestClient
from kilonova.compute import settings as compute_settings
from kilonova.compute.bootstrap import bootstrap_cells, bootstrap_flavors
from kilonova.compute.world import World
from kilonova.conductor.heartbeat import CONDUCTOR, SCHEDULER, Heartbeat
from kilonova.conductor.reports import AgentReports, NewHosts
from kilonova.conductor.service import Conductor
from kilonova.conf.all_in_one import AllInOne
from kilonova.conf.load import load, warn_without_effect
from kilonova.core import liveness, log
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
from kilonova.http.auth import Auth
from kilonova.http.policy import Policy, compute_rules
from kilonova.http.server import HttpServer
from kilonova.http.transport import RoutedTransport, SocketTransport, WsgiTransport
from kilonova.placement import app as placement
from kilonova.placement.store.prepare import prepare as prepare_placement
from kilonova.scheduler import settings as scheduler_settings
from kilonova.scheduler.service import Scheduler
from kilonova.sql.engine import Database
from kilonova.sql.migrate import prepare
from kilonova.virt.simulated import SimulatedDriver, SimulatedSettings
from kilonova.wiring.parts import Clients, Cloud, EventsToCompute, Part, WsgiApp, clients_over, mounted
from kilonova.workflows.catalogue import WORKFLOWS, recorder

LOG = logging.getLogger(__name__)

_READY_WITHIN = 30.0  # seconds that the first hosts may take to be known before the start gives up waiting


class _Later:
    """A WSGI callable that is known only after its callers were made."""

    def __init__(self) -> None:
        self.app: WsgiApp | None = None

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        assert self.app is not None
        return self.app(environ, start_response)


@dataclass(frozen=True, slots=True)
class _Ground:
    """What every part of a cloud in one process stands on."""

    settings: AllInOne
    conf: Any
    files: _Files
    transport: RoutedTransport
    people: Any
    auth: Auth
    policy: Policy
    clients: Clients

    @property
    def identity_url(self) -> str:
        """Where tokens come from."""
        return f"{self.settings.base_url}/identity"

    def behind(self, service: str, *, limit_body: bool = True) -> Callable[[WsgiApp], WsgiApp]:
        """Puts a service behind the middleware."""
        options = middleware.settings(self.conf, limit_body=limit_body)
        return lambda app: middleware.pipeline(
            app, service=service, settings=options, auth=self.auth, policy=self.policy
        )


def all_in_one(settings: AllInOne) -> Cloud:
    """The cloud that `kilonova up` runs; nothing of it is started yet. ConfigError for a bad configuration."""
    conf = load(settings.config_files, _overrides(settings), warn=False)
    log.setup(conf, "kilonova")
    warn_without_effect(settings.config_files)
    root = _Later()
    ground = _ground(settings, conf, root)
    cells, cell1 = _cells(ground.files)
    bus = LocalBus()
    directory = AgentDirectory(lambda: [cell.database for cell in cells], _down_after(conf))
    clients = ground.clients
    world = World(
        cells=cells, bus=bus, settings=compute_settings.from_conf(conf), images=clients.images,
        network=clients.network, volumes=clients.volumes, placement=clients.placement, identity=clients.identity,
        agent_of=directory.agent_of,
    )  # fmt: skip
    embedded, net = _embedded(ground)
    parts = [*_control(ground, world, cell1, directory), net, _hypervisors(ground, bus)]
    cloud = Cloud(settings.base_url, parts, ground.files.opened, HttpServer(root, settings.host, settings.port))
    compute = compute_app(world, ground.policy, auth_uri=ground.identity_url, behind=ground.behind("compute"))
    root.app = mounted({**embedded, "compute": compute}, lambda: cloud.ready)
    return cloud


def _ground(settings: AllInOne, conf: Any, root: _Later) -> _Ground:
    transport = RoutedTransport({settings.base_url: WsgiTransport(root)}, SocketTransport())
    files = _Files(settings.database_dir)
    secrets = settings.secrets
    people = identity.make_identity(files.open("identity"))
    bootstrap_identity(
        people, admin_password=secrets.admin_password, demo_password=secrets.demo_password,
        alt_demo_password=secrets.alt_demo_password, service_password=secrets.service_password,
        base_url=settings.base_url, reset_admin=settings.reset_admin,
    )  # fmt: skip
    identity_url = f"{settings.base_url}/identity"
    auth = Auth(conf, transport, _credentials(settings, identity_url, "nova"))
    people.on_revoke(lambda gone: auth.forget(gone.secret) if gone.secret else auth.forget_all())
    policy = Policy(compute_rules(), conf)
    clients = _clients(conf, transport, settings, identity_url)
    return _Ground(settings, conf, files, transport, people, auth, policy, clients)


def _embedded(ground: _Ground) -> tuple[dict[str, WsgiApp], Any]:
    """The services beside compute by their prefix, and the network service, which is to be started."""
    settings, files, clients = ground.settings, ground.files, ground.clients
    projects = {row["name"]: row["id"] for row in _projects(ground.people)}
    pictures = images.make_world(files.open("images"), settings.image_dir)
    bootstrap_images(pictures, owner=projects["admin"])
    tokens = client_auth.password_tokens(ground.transport, **_login(settings, ground.identity_url, "neutron"))
    compute = RestClient(
        "compute", f"{settings.base_url}/compute/v2.1", ground.transport, tokens, microversion="compute"
    )
    net = network.make_app(files.open("network"), notifier=EventsToCompute(HttpCompute(compute)))
    bootstrap_network(
        net.database, admin_project=projects["admin"], demo_project=projects["demo"],
        private_cidr=settings.private_cidr, public_cidr=settings.public_cidr,
    )  # fmt: skip
    disks = volumes.make_app(files.open("volumes"), images=lambda ctx, image: clients.images.as_user(ctx).show(image))
    room = files.open("placement")
    prepare_placement(room)
    people = identity.make_app(ground.people, ground.identity_url)
    apps: dict[str, WsgiApp] = {
        "identity": middleware.pipeline(people, service="identity", settings=middleware.settings(ground.conf)),
        "placement": ground.behind("placement")(placement.make_app(room, auth_uri=ground.identity_url)),
        "image": ground.behind("image", limit_body=False)(images.make_app(pictures, ground.identity_url)),
        "networking": ground.behind("network")(net),
        "volume": ground.behind("volume")(disks),
    }
    return apps, net


def _control(ground: _Ground, world: World, cell1: str, directory: AgentDirectory) -> list[Any]:
    """Scheduler and conductor of the one cell."""
    conf, cells, bus = ground.conf, world.cells, world.bus
    scheduler = Scheduler(cells, world.placement, scheduler_settings.from_conf(conf))
    conductor = Conductor(world, WORKFLOWS, recorder(), me=conf.host, host=conf.host)
    reports = AgentReports(
        cells.database(cell1), cells.api, cell1, bus, NewHosts.from_conf(conf, all_in_one=True),
        conductor.agent_seen, directory,
    )  # fmt: skip
    deciding: dict[str, Any] = {
        "select_destinations": scheduler.select_destinations,
        "hosts_changed": scheduler.hosts_changed,
    }
    return [
        Heartbeat(cells.database(cell1), conf.host, CONDUCTOR | SCHEDULER, conf.report_interval),
        Part(lambda: bus.serve("scheduler", deciding), bus.close),
        Part(lambda: conductor.start(bus, reports.handlers()), conductor.close),
    ]


def _hypervisors(ground: _Ground, bus: LocalBus) -> Part:
    """One agent process's worth of simulated hosts."""
    conf, directory = ground.conf, ground.settings.state_dir
    driver = SimulatedDriver(str(directory / "guests.db"), settings=SimulatedSettings.from_conf(conf))
    agent = Agent("all-in-one", bus, driver, ground.clients.placement, AgentSettings.from_conf(conf), directory)
    return Part(lambda: _start_agent(agent), lambda: _stop_agent(agent, driver))


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

    return clients_over(lambda group: client_auth.rest_client(conf, group, transport, tokens))


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
