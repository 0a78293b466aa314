"""Each service as a process of its own: the same parts as in `one_process`, on databases, a broker and other services.

What a process is comes from its configuration file: `[api_database]`, `[database]` (the cell's, where it belongs to
one), `[placement_database]`, `transport_url`, and the credentials and endpoints of the services it calls.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kilonova.agent.service import Agent
from kilonova.agent.settings import AgentSettings
from kilonova.agent.state import agent_identity
from kilonova.api.compute.app import make_app as compute_app
from kilonova.bus.bus import Bus
from kilonova.cells.buses import CellBuses
from kilonova.cells.cells import API, CELL0, Cells
from kilonova.clients.auth import rest_client, service_tokens
from kilonova.compute import settings as compute_settings
from kilonova.compute.world import World
from kilonova.conductor.heartbeat import CONDUCTOR, SCHEDULER, Heartbeat
from kilonova.conductor.reports import AgentReports, NewHosts
from kilonova.conductor.service import Conductor
from kilonova.conf.all_in_one import Secrets
from kilonova.core import liveness
from kilonova.core.errors import Invalid
from kilonova.db.queries import cell_mappings
from kilonova.db.queries.hosts import AgentDirectory
from kilonova.http import middleware
from kilonova.http.auth import Auth
from kilonova.http.policy import Policy, compute_rules
from kilonova.http.server import HttpServer
from kilonova.http.transport import RoutedTransport, SocketTransport, WsgiTransport, socket_transport
from kilonova.placement import app as placement
from kilonova.placement.store.prepare import prepare as prepare_placement
from kilonova.placement.world import settings as placement_settings
from kilonova.scheduler import settings as scheduler_settings
from kilonova.scheduler.service import Scheduler
from kilonova.sql.engine import Database
from kilonova.virt.simulated import SimulatedDriver, SimulatedSettings
from kilonova.wiring.embedded import Embedded, EmbeddedSettings
from kilonova.wiring.parts import Clients, Cloud, Later, Part, WsgiApp, clients_over, mounted
from kilonova.workflows.catalogue import WORKFLOWS, recorder

LOG = logging.getLogger(__name__)

_CREDENTIALS = ("service_user", "keystone_authtoken")


class NeedsSetting(Invalid):
    """A service cannot be without an option."""

    code, message = "needs_setting", "The configuration must set [{group}]{name} for this service."


@dataclass(frozen=True)
class Region:
    """What the processes of compute share: databases, buses and clients, opened."""

    conf: Any
    databases: list[Database]
    cells: Cells
    bus: CellBuses
    clients: Clients
    directory: AgentDirectory

    def world(self, journals: Sequence[str] | None = None) -> World:
        """The use cases' world. journals: the databases whose workflows this process runs."""
        clients = self.clients
        return World(
            cells=self.cells, bus=self.bus, settings=compute_settings.from_conf(self.conf), images=clients.images,
            network=clients.network, volumes=clients.volumes, placement=clients.placement,
            identity=clients.identity, agent_of=self.directory.agent_of,
            journals=None if journals is None else tuple(journals),
        )  # fmt: skip


def database_url(conf: Any, group: str, file: str) -> str:
    """The address that a group names, or an SQLite file in the state directory."""
    found: str | None = conf[group].connection
    return found or f"sqlite:///{Path(conf.state_path) / file}"


def open_bus(conf: Any, url: str | None = None) -> Bus:
    """The bus of an address (unset: the configuration's), which must be a broker's between processes."""
    address = url or conf.transport_url
    if not address:
        raise NeedsSetting(group="DEFAULT", name="transport_url")
    from kilonova.bus.amqp import AmqpBus

    return AmqpBus(conf, address)


def region(conf: Any) -> Region:
    """Open what the configuration names. The API database must have been made by `kilonova db sync`."""
    opened: list[Database] = []

    def database(url: str) -> Database:
        found = Database(url, pool_size=conf.database.max_pool_size)
        opened.append(found)
        return found

    cells = Cells(database(database_url(conf, "api_database", "api.db")), database)
    down_after = liveness.down_after(conf.report_interval, conf.service_down_time)
    directory = AgentDirectory(lambda: [cell.database for cell in cells], down_after)
    addresses = _Addresses(cells.api)
    bus = CellBuses(
        open_bus(conf), lambda url: open_bus(conf, url), lambda cell: addresses.of(cell, conf.transport_url),
        addresses.cell_of_agent(cells),
    )  # fmt: skip
    return Region(conf, opened, cells, bus, _clients(conf), directory)


class _Addresses:
    """Transport URLs of the cells, and which cell an agent is in."""

    def __init__(self, api: Database) -> None:
        self._api = api
        self._known: dict[str, str] = {}

    def of(self, cell: str, top: str) -> str | None:
        """The cell's address; None when it is the top's."""
        if cell not in self._known:
            self._known = {row.uuid: row.transport_url for row in cell_mappings.every(self._api)}
        address = self._known.get(cell)
        return None if address in (None, "", "none:///", top) else address

    def cell_of_agent(self, cells: Cells) -> Callable[[str], str | None]:
        """A look-up by the agent's id."""
        from kilonova.db.queries import hosts

        def find(agent: str) -> str | None:
            for cell in cells:
                with cell.database.read() as connection:
                    if hosts.has_agent(connection, agent):
                        return cell.uuid
            return None

        return find


def _clients(conf: Any) -> Clients:
    tokens = service_tokens(conf, _CREDENTIALS, SocketTransport())
    return clients_over(lambda group: rest_client(conf, group, socket_transport(conf[group]), tokens))


def own_cell(conf: Any, cells: Cells) -> str | None:
    """The cell whose database the configuration names; None for a process above the cells."""
    if not conf.database.connection:
        return None
    for row in cell_mappings.every(cells.api):
        if row.uuid != CELL0 and row.database_connection == conf.database.connection:
            return str(row.uuid)
    raise CellNotMapped(url=Database(conf.database.connection).url.render_as_string(hide_password=True))


class CellNotMapped(Invalid):
    """The cell is not in the registry."""

    code = "cell_not_mapped"
    message = "No cell has the database {url}: make it known with `kilonova cell create_cell`."


# -- the processes ---------------------------------------------------------------------------------------------------


def api(conf: Any, host: str, port: int) -> Cloud:
    """The Compute API."""
    ground = region(conf)
    return Cloud(
        f"http://{host}:{port}", [Part(lambda: None, ground.bus.close)], ground.databases,
        HttpServer(api_app(conf, ground), host, port),
    )  # fmt: skip


def api_app(conf: Any, ground: Region | None = None) -> WsgiApp:
    """The Compute API as a WSGI callable, at the root and below `/compute`."""
    ground = ground or region(conf)
    policy = Policy(compute_rules(), conf)
    auth = Auth(conf)
    options = middleware.settings(conf)

    def behind(app: WsgiApp) -> WsgiApp:
        return middleware.pipeline(app, service="compute", settings=options, auth=auth, policy=policy)

    auth_uri = _auth_uri(conf)
    compute = compute_app(ground.world(), policy, auth_uri=auth_uri, behind=behind)
    return mounted({"compute": compute}, lambda: True, otherwise=compute)


def _auth_uri(conf: Any) -> str:
    """Where a 401 says that tokens come from; the option is keystonemiddleware's."""
    from keystonemiddleware import auth_token

    for group, options in auth_token.list_opts():
        conf.register_opts([option for option in options if option.dest == "www_authenticate_uri"], group=group)
    return str(conf.keystone_authtoken.www_authenticate_uri or "")


def conductor(conf: Any, instance: int = 1) -> Cloud:
    """A conductor: of its cell where `[database]` names one, and of the API database where it is at the top.

    instance: tells several on one host apart; each must be the same after a restart.
    """
    ground = region(conf)
    cell = own_cell(conf, ground.cells)
    journals = [*([API, CELL0] if _at_top(conf, ground, cell) else []), *([cell] if cell else [])]
    world = ground.world(journals)
    me = conf.host if instance == 1 else f"{conf.host}:{instance}"
    engine = Conductor(world, WORKFLOWS, recorder(), me=me, host=conf.host)
    more: dict[str, Any] = {}
    parts: list[Any] = []
    if cell is not None:
        database = ground.cells.database(cell)
        new_hosts = NewHosts.from_conf(conf, all_in_one=False)
        more = AgentReports(
            database, ground.cells.api, cell, ground.bus, new_hosts, engine.agent_seen, ground.directory
        ).handlers()
        parts.append(Heartbeat(database, me, CONDUCTOR, conf.report_interval))
    parts.append(Part(lambda: engine.start(ground.bus, more), engine.close))
    return _process([Part(lambda: None, ground.bus.close), *parts], ground.databases)


def _at_top(conf: Any, ground: Region, cell: str | None) -> bool:
    if cell is None:
        return True
    row = next(row for row in cell_mappings.every(ground.cells.api) if row.uuid == cell)
    return bool(row.transport_url in ("", conf.transport_url)) and bool(conf.api_database.connection)


def scheduler(conf: Any, instance: int = 1) -> Cloud:
    """A scheduler; any number may share the work."""
    ground = region(conf)
    deciding = Scheduler(ground.cells, ground.clients.placement, scheduler_settings.from_conf(conf))
    handlers: dict[str, Any] = {
        "select_destinations": deciding.select_destinations,
        "hosts_changed": deciding.hosts_changed,
    }
    me = conf.host if instance == 1 else f"{conf.host}:{instance}"
    parts: list[Any] = [Part(lambda: None, ground.bus.close), _Serving(ground.bus, "scheduler", handlers)]
    first = next(iter(ground.cells), None)
    if first is not None:
        parts.append(Heartbeat(first.database, me, SCHEDULER, conf.report_interval))
    return _process(parts, ground.databases)


def agent(conf: Any) -> Cloud:
    """An agent with the simulated driver. It knows no database: only its cell's bus and Placement."""
    directory = Path(conf.state_path)
    directory.mkdir(parents=True, exist_ok=True)
    bus = open_bus(conf)
    tokens = service_tokens(conf, _CREDENTIALS, SocketTransport())
    capacity = rest_client(conf, "placement", socket_transport(conf.placement), tokens)
    clients = clients_over(lambda group: capacity)
    driver = SimulatedDriver(str(directory / "guests.db"), settings=SimulatedSettings.from_conf(conf))
    one = Agent(agent_identity(directory, conf.host), bus, driver, clients.placement, AgentSettings.from_conf(conf),
                directory)  # fmt: skip

    def stop() -> None:
        one.stop()
        driver.close()
        bus.close()

    return _process([Part(one.start, stop)], [])


def placement_app(conf: Any) -> WsgiApp:
    """Placement as a WSGI callable, at the root and below `/placement`. conf: of the application `placement`."""
    room = Database(conf.placement_database.connection, pool_size=conf.placement_database.max_pool_size)
    prepare_placement(room)
    app = placement.make_app(room, placement_settings(conf.placement), auth_uri=_auth_uri(conf))
    inner = middleware.pipeline(app, service="placement", settings=middleware.settings(conf), auth=Auth(conf))
    return mounted({"placement": inner}, lambda: True, otherwise=inner)


def capacity(conf: Any, host: str, port: int) -> Cloud:
    """The Placement service."""
    if not conf.placement_database.connection:
        raise NeedsSetting(group="placement_database", name="connection")
    return Cloud(f"http://{host}:{port}", [], [], HttpServer(placement_app(conf), host, port))


def embedded(conf: Any) -> Cloud:
    """The four small services over a socket."""
    options = conf.embedded
    for name in ("admin_password", "service_password"):
        if not getattr(options, name):
            raise NeedsSetting(group="embedded", name=name)
    base = (options.base_url or f"http://{options.listen}:{options.listen_port}").rstrip("/")
    root, opened = Later(), []

    def database(service: str) -> Database:
        url = options.connection
        text = url.format(service=service) if url else f"sqlite:///{Path(conf.state_path) / service}.db"
        opened.append(Database(text))
        return opened[-1]

    Path(conf.state_path).mkdir(parents=True, exist_ok=True)
    transport = RoutedTransport({base: WsgiTransport(root)}, SocketTransport())
    people = options.demo_password or options.admin_password
    services = Embedded(
        EmbeddedSettings(
            base_url=base, image_dir=Path(options.image_dir or Path(conf.state_path) / "images"),
            private_cidr=options.private_cidr, public_cidr=options.public_cidr,
            secrets=Secrets(options.admin_password, people, people, options.service_password),
            open=database, urls={"compute": options.compute_url, "placement": options.placement_url},
        ),
        conf, transport, Policy(compute_rules(), conf),
    )  # fmt: skip
    tokens = services.tokens("nova")
    clients = clients_over(lambda group: rest_client(conf, group, transport, tokens))
    apps, net = services.build(clients.images, options.compute_url)
    cloud = Cloud(base, [net], opened, HttpServer(root, options.listen, options.listen_port))
    root.app = mounted(apps, lambda: cloud.ready)
    return cloud


class _Serving:
    """Rows served on a bus between start and stop."""

    def __init__(self, bus: Bus, topic: str, handlers: dict[str, Any]) -> None:
        self._bus, self._topic, self._handlers = bus, topic, handlers
        self._end: Callable[[], None] | None = None

    def start(self) -> None:
        """Begin to serve."""
        self._end = self._bus.serve(self._topic, self._handlers)

    def stop(self) -> None:
        """Serve no more."""
        if self._end is not None:
            self._end()


def _process(parts: list[Any], databases: list[Database]) -> Cloud:
    """A process without an HTTP port."""
    return Cloud("", parts, databases, None)
