"""What the processes of compute share: databases, buses and clients, opened as the configuration file says.

`[api_database]`, `[database]` (the cell's, where a process belongs to one), `transport_url`, and the credentials and
endpoints of the services that are called.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from kilonova.bus.address import place
from kilonova.bus.bus import Bus, NoBroker
from kilonova.cells.buses import CellBuses
from kilonova.cells.cells import API, CELL0, Cells
from kilonova.clients.auth import rest_client, service_tokens
from kilonova.compute import settings as compute_settings
from kilonova.compute.world import World
from kilonova.conf import databases
from kilonova.conf.load import ConfigError
from kilonova.core import liveness
from kilonova.core.errors import Invalid, Unavailable
from kilonova.db.prepare import require_api, require_cell
from kilonova.db.queries import cell_mappings, hosts
from kilonova.db.queries import region as stored_region
from kilonova.db.queries.hosts import AgentDirectory
from kilonova.http.transport import SocketTransport, socket_transport
from kilonova.sql.address import parse, shown
from kilonova.sql.engine import Database
from kilonova.sql.shared_clock import SharedClock
from kilonova.wiring.broker import CREDENTIALS, open_bus
from kilonova.wiring.parts import Clients, clients_over

LOG = logging.getLogger(__name__)


class CellNotMapped(Invalid):
    """The cell is not in the registry."""

    code = "cell_not_mapped"
    message = "No cell has the database {url}: make it known with `kilonova cell create_cell`."


@dataclass(frozen=True)
class Region:
    """Databases, buses and clients of a process. of_region: its own bus is the region's, not that of one cell."""

    conf: Any
    databases: list[Database]
    cells: Cells
    bus: CellBuses
    clients: Clients
    directory: AgentDirectory
    clock: SharedClock
    of_region: bool

    def world(self, journals: Sequence[str] | None = None) -> World:
        """The use cases' world. journals: the databases whose workflows this process runs."""
        clients = self.clients
        return World(
            cells=self.cells, bus=self.bus, settings=compute_settings.from_conf(self.conf), images=clients.images,
            network=clients.network, volumes=clients.volumes, placement=clients.placement,
            identity=clients.identity, accelerators=clients.accelerators, agent_of=self.directory.agent_of,
            journals=None if journals is None else tuple(journals),
        )  # fmt: skip

    def leave(self) -> None:
        """Close what is not a database."""
        self.bus.close()
        self.clock.stop()

    def close(self) -> None:
        """Close all of it, for who cannot go on."""
        self.leave()
        for database in self.databases:
            database.dispose()


class RegionUnknown(Unavailable):
    """Which of two brokers a conductor is at decides what it does."""

    code = "region_unknown"
    message = "Where the region's broker is, its first API or scheduler process tells, and none has been started yet."


def region(conf: Any, *, for_clients: bool = False, of_cell: bool = False) -> Region:
    """Open what the configuration names.

    The API database must be as `kilonova db sync` of this version leaves it: DatabaseEmpty, DatabaseOlder (both pass
    when that is done), DatabaseNewer.

    for_clients: a client of the API waits for what is called over the bus. The API database's clock is the process's
    from now on.
    of_cell: the process belongs to the cell that `[database]` names, if it names one; its `transport_url` is the
    cell's, which may be the region's too. Others tell where the region's broker is. RegionUnknown while nobody has.
    """
    opened: list[Database] = []
    open_cell = databases.opener(conf)

    def kept(database: Database) -> Database:
        opened.append(database)
        return database

    try:
        api = kept(databases.open_database(conf, "api_database"))
        require_api(api)
        cells = Cells(api, lambda url: kept(open_cell(url)))
        elsewhere = _region_elsewhere(conf, api) if of_cell and conf.database.connection else None
        if elsewhere is None and conf.transport_url:
            stored_region.tell(api, conf.transport_url)
    except BaseException:
        for database in opened:
            database.dispose()
        raise
    down_after = liveness.down_after(conf.report_interval, conf.service_down_time)
    directory = AgentDirectory(lambda: [cell.database for cell in cells], down_after)
    addresses = _Addresses(cells.api, conf.transport_url, elsewhere)
    bus = CellBuses(
        open_bus(conf, for_clients=for_clients), lambda url: _elsewhere(conf, url),
        addresses.of, addresses.cell_of_agent(cells),
    )  # fmt: skip
    made = Region(conf, opened, cells, bus, _clients(conf), directory, SharedClock(api), elsewhere is None)
    try:
        made.clock.start()
    except BaseException:
        made.close()
        raise
    return made


def _elsewhere(conf: Any, url: str) -> Bus:
    """A bus to another place, connected. NoBroker when it is away: what goes on here is not to wait for it."""
    bus = open_bus(conf, url, for_clients=True)
    try:
        bus.connect()
    except BaseException as error:
        bus.close()
        if isinstance(error, ConfigError):  # somebody asks meanwhile, who is not to be told
            LOG.error("Nothing can be sent to another cell: %s", error)
            raise NoBroker from error
        raise
    return bus


def _region_elsewhere(conf: Any, api: Database) -> str | None:
    """The address of the region's broker for a process of a cell that has another; None where they share one."""
    told = stored_region.transport_url(api)
    if told is None:
        if sum(row.uuid != CELL0 for row in cell_mappings.every(api)) > 1:
            raise RegionUnknown
        return None  # of a region with one cell, which is being started for the first time
    return None if place(told) == place(conf.transport_url or "") else told


class _Addresses:
    """Transport URLs of the cells and of the region, and which cell an agent is in.

    own: the process's own. region: where the region is, None when that is the own one.
    """

    def __init__(self, api: Database, own: str, region: str | None) -> None:
        self._api, self._own, self._region = api, place(own or ""), region
        self._known: dict[str, str] = {}

    def of(self, database: str) -> str | None:
        """The address for a cell or `api`; None when it is the own one."""
        if database == API:
            return self._region
        if database not in self._known:
            self._known = {row.uuid: row.transport_url for row in cell_mappings.every(self._api)}
        address = self._known.get(database)
        if address in (None, "", "none:///"):
            return self._region
        return None if place(address) == self._own else address

    def cell_of_agent(self, cells: Cells) -> Callable[[str], str | None]:
        """A look-up by the agent's id."""

        def find(agent: str) -> str | None:
            for cell in cells:
                with cell.database.read() as connection:
                    if hosts.has_agent(connection, agent):
                        return cell.uuid
            return None

        return find


def _clients(conf: Any) -> Clients:
    tokens = service_tokens(conf, CREDENTIALS, SocketTransport())
    return clients_over(lambda group: rest_client(conf, group, socket_transport(conf[group]), tokens))


def own_cell(conf: Any, cells: Cells) -> str | None:
    """The cell whose database the configuration names; None for a process above the cells.

    CellNotMapped; and as for the API database when its tables are not of this version.
    """
    if not conf.database.connection:
        return None
    for row in cell_mappings.every(cells.api):
        if row.uuid != CELL0 and row.database_connection == conf.database.connection:
            require_cell(cells.database(row.uuid))
            return str(row.uuid)
    raise CellNotMapped(url=shown(parse(conf.database.connection)))
