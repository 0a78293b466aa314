"""A whole cloud in this process: SQLite files, a bus of threads, embedded services, simulated hypervisors, one port.

Calls between our own parts go through the production clients and never through the socket.
"""

from __future__ import annotations

import logging
import socket
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from kilonova.agent.service import Agent
from kilonova.agent.settings import AgentSettings
from kilonova.agent.state import agent_identity
from kilonova.api.compute.app import make_app as compute_app
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
from kilonova.conf.all_in_one import AllInOne
from kilonova.conf.load import load, warn_without_effect
from kilonova.core import liveness, log
from kilonova.db import api_schema, cell_schema
from kilonova.db.queries import requests
from kilonova.db.queries.hosts import AgentDirectory
from kilonova.http import middleware
from kilonova.http.policy import Policy, compute_rules
from kilonova.http.server import HttpServer
from kilonova.http.transport import RoutedTransport, SocketTransport, WsgiTransport
from kilonova.metadata import settings as metadata_settings
from kilonova.metadata.app import MetadataApp
from kilonova.placement import app as placement
from kilonova.placement.store.prepare import prepare as prepare_placement
from kilonova.scheduler import settings as scheduler_settings
from kilonova.scheduler.service import Scheduler
from kilonova.sql.engine import Database
from kilonova.sql.migrate import prepare
from kilonova.virt.simulated import SimulatedDriver, SimulatedSettings
from kilonova.wiring.embedded import Embedded, EmbeddedSettings
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
    root = Later()
    transport = RoutedTransport({settings.base_url: WsgiTransport(root)}, SocketTransport())
    files = _Files(settings.database_dir)
    policy = Policy(compute_rules(), conf)
    embedded = Embedded(_embedded_settings(settings, files), conf, transport, policy)
    tokens = embedded.tokens("nova")
    clients = clients_over(lambda group: rest_client(conf, group, transport, tokens))
    world, cell1, directory = _world(conf, files, clients)
    apps, embedded_parts = embedded.build(clients.images, f"{settings.base_url}/compute/v2.1")
    auth_uri = embedded.settings.identity_url
    apps["placement"] = embedded.behind("placement")(_placement(files, auth_uri))
    apps["compute"] = compute_app(world, policy, auth_uri=auth_uri, behind=embedded.behind("compute"))
    apps["metadata"] = _metadata(conf, world, settings.secrets.metadata_secret)
    parts = [*_control(conf, world, cell1, directory), *embedded_parts, _hypervisors(conf, settings.state_dir, world)]
    cloud = Cloud(settings.base_url, parts, files.opened, HttpServer(root, settings.host, settings.port))
    root.app = mounted(apps, lambda: cloud.ready)
    return cloud


def _embedded_settings(settings: AllInOne, files: _Files) -> EmbeddedSettings:
    return EmbeddedSettings(
        base_url=settings.base_url, image_dir=settings.image_dir, private_cidr=settings.private_cidr,
        public_cidr=settings.public_cidr, secrets=settings.secrets, open=files.open,
        reset_admin=settings.reset_admin,
    )  # fmt: skip


def _world(conf: Any, files: _Files, clients: Clients) -> tuple[World, str, AgentDirectory]:
    cells, cell1 = _cells(files)
    directory = AgentDirectory(lambda: [cell.database for cell in cells], _down_after(conf))
    world = World(
        cells=cells, bus=LocalBus(), settings=compute_settings.from_conf(conf), images=clients.images,
        network=clients.network, volumes=clients.volumes, placement=clients.placement, identity=clients.identity,
        agent_of=directory.agent_of,
    )  # fmt: skip
    return world, cell1, directory


def _placement(files: _Files, auth_uri: str) -> WsgiApp:
    room = files.open("placement")
    prepare_placement(room)
    return placement.make_app(room, auth_uri=auth_uri)


def _metadata(conf: Any, world: World, secret: str) -> WsgiApp:
    """Everybody here has one address, so a guest is known by a signature only: by the configured secret or by ours."""
    found = metadata_settings.from_conf(conf)
    app = MetadataApp(world, replace(found, proxy=True, secret=found.secret or secret))
    return middleware.pipeline(app, service="metadata", settings=middleware.settings(conf))


def _control(conf: Any, world: World, cell1: str, directory: AgentDirectory) -> list[Any]:
    """Scheduler and conductor of the one cell."""
    cells, bus = world.cells, world.bus
    scheduler = Scheduler(
        cells, world.placement, scheduler_settings.from_conf(conf), partial(requests.unwanted, cells.api)
    )
    conductor = Conductor(
        world, WORKFLOWS, recorder(), me=conf.host, host=conf.host, told=NetworkCache(world).told,
        settings=Settings(threads=_STEPS_AT_ONCE),
    )
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
    }


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
