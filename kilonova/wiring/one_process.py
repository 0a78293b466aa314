"""A whole cloud in this process: a bus of threads, embedded services, simulated hypervisors, one port; SQLite files
where the configuration names no databases.

Calls between our own parts go through the production clients and never through the socket.
"""

from __future__ import annotations

import logging
import socket
from dataclasses import replace
from pathlib import Path
from typing import Any

from kilonova.agent.service import Agent
from kilonova.agent.settings import AgentSettings
from kilonova.agent.state import agent_identity
from kilonova.api.compute.app import make_app as compute_app
from kilonova.api.scheduler import app as scheduler_api
from kilonova.api.scheduler.policy import make_policy as make_scheduler_policy
from kilonova.bus.local import LocalBus
from kilonova.cells.cells import Cells
from kilonova.clients.auth import rest_client
from kilonova.compute import settings as compute_settings
from kilonova.compute.bootstrap import bootstrap_cells, bootstrap_flavors
from kilonova.compute.world import World
from kilonova.conductor.heartbeat import CONDUCTOR, SCHEDULER, Heartbeat
from kilonova.conductor.reconcilers.network_cache import NetworkCache
from kilonova.conductor.reports import AgentReports, NewHosts
from kilonova.conductor.rounds import Rounds
from kilonova.conductor.service import Conductor
from kilonova.conf import databases
from kilonova.conf.all_in_one import AllInOne
from kilonova.conf.load import ConfigError, load, warn_without_effect
from kilonova.core import liveness, log
from kilonova.core.metrics import Meters
from kilonova.db import api_schema, cell_schema
from kilonova.db.queries.hosts import AgentDirectory
from kilonova.http import middleware
from kilonova.http.noauth import NOAUTH
from kilonova.http.policy import Policy, compute_rules
from kilonova.http.server import HttpServer
from kilonova.http.transport import RoutedTransport, SocketTransport, WsgiTransport
from kilonova.metadata import settings as metadata_settings
from kilonova.metadata.app import MetadataApp
from kilonova.placement import app as placement
from kilonova.placement.policy import make_policy
from kilonova.placement.store.prepare import prepare as prepare_placement
from kilonova.placement.world import settings as placement_settings
from kilonova.scheduler.surroundings import Others
from kilonova.sql import reach
from kilonova.sql.engine import Database
from kilonova.sql.migrate import prepare
from kilonova.virt.simulated import SimulatedDriver, SimulatedSettings
from kilonova.wiring.deciding import deciding
from kilonova.wiring.embedded import Embedded, EmbeddedSettings
from kilonova.wiring.metrics import meters
from kilonova.wiring.parts import Clients, Cloud, Later, Part, WsgiApp, clients_over, mounted
from kilonova.workflows.catalogue import WORKFLOWS, recorder
from kilonova.workflows.engine import Settings

LOG = logging.getLogger(__name__)

_STEPS_AT_ONCE = 3
"""Workflow steps that run at once: they wait for nothing outside this process, and more only keep requests waiting for
the interpreter (of eight clients that create servers by a third)."""
_READY_WITHIN = 30.0  # seconds that the first hosts may take to be known before the start gives up waiting


def all_in_one(settings: AllInOne) -> Cloud:
    """The cloud that `kilonova up` runs; nothing of it is started yet. ConfigError for a bad configuration."""
    conf = load(settings.config_files, _overrides(settings), warn=False)
    log.setup(conf, "kilonova")
    warn_without_effect(settings.config_files)
    rooms = _Databases(settings, conf)
    root = Later()
    transport = RoutedTransport({settings.base_url: WsgiTransport(root)}, SocketTransport())
    policy = Policy(compute_rules(), conf)
    counted = meters(conf)
    embedded = Embedded(_embedded_settings(settings, rooms, counted), conf, transport, policy)
    tokens = embedded.tokens("nova")
    clients = clients_over(lambda group: rest_client(conf, group, transport, tokens))
    world, cell1, directory = _world(conf, rooms, clients)
    apps, embedded_parts = embedded.build(clients.images, f"{settings.base_url}/compute/v2.1")
    auth_uri = embedded.settings.identity_url
    apps["placement"] = _placement(rooms, embedded, auth_uri)
    apps["compute"] = compute_app(world, policy, auth_uri=auth_uri, behind=embedded.behind("compute"))
    apps["scheduler"] = _scheduler_api(conf, world, embedded)
    apps["metadata"] = _metadata(conf, world, settings.secrets.metadata_secret, counted)
    parts = [*_control(conf, world, cell1, directory), *embedded_parts, _hypervisors(conf, settings.state_dir, world)]
    cloud = Cloud(settings.base_url, parts, rooms.opened, HttpServer(root, settings.host, settings.port))
    root.app = mounted(apps, lambda: cloud.ready, meters=counted)
    return cloud


def _embedded_settings(settings: AllInOne, rooms: _Databases, counted: Meters) -> EmbeddedSettings:
    return EmbeddedSettings(
        base_url=settings.base_url, image_dir=settings.image_dir, private_cidr=settings.private_cidr,
        public_cidr=settings.public_cidr, secrets=settings.secrets, open=rooms.open_embedded,
        reset_admin=settings.reset_admin, meters=counted,
    )  # fmt: skip


def _world(conf: Any, rooms: _Databases, clients: Clients) -> tuple[World, str, AgentDirectory]:
    cells, cell1 = _cells(rooms)
    directory = AgentDirectory(lambda: [cell.database for cell in cells], _down_after(conf))
    world = World(
        cells=cells, bus=LocalBus(), settings=compute_settings.from_conf(conf), images=clients.images,
        network=clients.network, volumes=clients.volumes, placement=clients.placement, identity=clients.identity,
        accelerators=clients.accelerators, agent_of=directory.agent_of,
    )  # fmt: skip
    return world, cell1, directory


def _placement(rooms: _Databases, embedded: Embedded, auth_uri: str) -> WsgiApp:
    room, conf = rooms.open_placement()
    if conf.api.auth_strategy == NOAUTH:
        raise ConfigError(f"[api] auth_strategy = {NOAUTH} is for a Placement of its own: compute's calls have tokens.")
    prepare_placement(room)
    policy = make_policy(placement.OPS, conf)
    app = placement.make_app(
        room, placement_settings(conf.placement), policy=policy, auth_uri=auth_uri, meters=embedded.settings.meters
    )
    return embedded.behind("placement", policy)(app)


def _scheduler_api(conf: Any, world: World, embedded: Embedded) -> WsgiApp:
    policy = make_scheduler_policy(scheduler_api.OPS, conf)
    behind = embedded.behind("scheduler", policy)
    return scheduler_api.make_app(world, policy, auth_uri=embedded.settings.identity_url, behind=behind)


def _metadata(conf: Any, world: World, secret: str, counted: Meters) -> WsgiApp:
    """Everybody here has one address, so a guest is known by a signature only: by the configured secret or by ours."""
    found = metadata_settings.from_conf(conf)
    app = MetadataApp(world, replace(found, proxy=True, secret=found.secret or secret))
    return middleware.pipeline(app, service="metadata", settings=middleware.settings(conf, meters=counted))


def _control(conf: Any, world: World, cell1: str, directory: AgentDirectory) -> list[Any]:
    """Scheduler and conductor of the one cell."""
    cells, bus = world.cells, world.bus
    others = Others(world.identity, world.network, world.placement)
    scheduling = deciding(conf, cells, world.placement, others, conf.host)
    conductor = Conductor(
        world, WORKFLOWS, recorder(), me=conf.host, host=conf.host, told=NetworkCache(world).told,
        settings=Settings(threads=_STEPS_AT_ONCE),
    )
    reports = AgentReports(
        cells.database(cell1), cells.api, cell1, bus, NewHosts.from_conf(conf, all_in_one=True),
        conductor.agent_seen, directory,
    )  # fmt: skip
    return [
        Heartbeat(cells.database(cell1), conf.host, CONDUCTOR | SCHEDULER, conf.report_interval),
        *scheduling.parts,
        Part(lambda: bus.serve("scheduler", scheduling.handlers), bus.close),
        Part(lambda: conductor.start(bus, reports.handlers()), conductor.close),
        Rounds(world),
    ]


def _hypervisors(conf: Any, directory: Path, world: World) -> Part:
    """One agent process's worth of simulated hosts."""
    driver = SimulatedDriver(str(directory / "guests.db"), settings=SimulatedSettings.from_conf(conf))
    identity = agent_identity(directory, "all-in-one")
    agent = Agent(identity, world.bus, driver, world.placement, AgentSettings.from_conf(conf), directory)
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
        "state_path": str(settings.database_dir),
    }


class _Databases:
    """Each database where the configuration has it, or else in a file of the state directory; each opened once."""

    def __init__(self, settings: AllInOne, conf: Any) -> None:
        settings.database_dir.mkdir(parents=True, exist_ok=True)
        self.conf, self._settings = conf, settings
        self.opened: list[Database] = []

    def open_embedded(self, service: str) -> Database:
        """An embedded service's."""
        return self.at(databases.embedded_address(self.conf, service))

    def open_placement(self) -> tuple[Database, Any]:
        """Placement's, whose options are a configuration of its own."""
        path = {"state_path": str(self._settings.database_dir)}
        conf = load(self._settings.config_files, path, application="placement", warn=False)
        return self._open(databases.address(conf, "placement_database"), conf, "placement_database"), conf

    def open_api(self) -> Database:
        """The API's."""
        return self._open(databases.address(self.conf, "api_database"), self.conf, "api_database")

    def at(self, url: str) -> Database:
        """The one of an address, with the pool that cells have. DatabaseUnreachable."""
        return self._open(url, self.conf, "database")

    def _open(self, url: str, conf: Any, group: str) -> Database:
        """Options limit the connections to a server. Those to a file cost nothing, so more of them stay open."""
        is_file = url.startswith("sqlite")
        self.opened.append(Database(url) if is_file else databases.opener(conf, group)(url))
        if not is_file:
            reach.wait(self.opened[-1])
        return self.opened[-1]


def _cells(rooms: _Databases) -> tuple[Cells, str]:
    api = rooms.open_api()
    prepare(api, api_schema.metadata, "kilonova.db.migrations.api")
    cell1_url = databases.address(rooms.conf, "database")
    cell1 = bootstrap_cells(api, databases.cell0_address(rooms.conf), cell1_url, "local:///")
    bootstrap_flavors(api)
    cells = Cells(api, rooms.at)
    for cell in cells.every():
        prepare(cell.database, cell_schema.metadata, "kilonova.db.migrations.cell")
    return cells, cell1
