"""What the processes of compute share: databases, buses and clients, opened as the configuration file says.

`[api_database]`, `[database]` (the cell's, where a process belongs to one), `transport_url`, and the credentials and
endpoints of the services that are called.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from kilonova.cells.buses import CellBuses
from kilonova.cells.cells import CELL0, Cells
from kilonova.clients.auth import rest_client, service_tokens
from kilonova.compute import settings as compute_settings
from kilonova.compute.world import World
from kilonova.conf import databases
from kilonova.core import liveness
from kilonova.core.errors import Invalid
from kilonova.db.prepare import require_api, require_cell
from kilonova.db.queries import cell_mappings, hosts
from kilonova.db.queries.hosts import AgentDirectory
from kilonova.http.transport import SocketTransport, socket_transport
from kilonova.sql.address import parse, shown
from kilonova.sql.engine import Database
from kilonova.wiring.broker import CREDENTIALS, open_bus
from kilonova.wiring.parts import Clients, clients_over


class CellNotMapped(Invalid):
    """The cell is not in the registry."""

    code = "cell_not_mapped"
    message = "No cell has the database {url}: make it known with `kilonova cell create_cell`."


@dataclass(frozen=True)
class Region:
    """Databases, buses and clients of a process."""

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

    def close(self) -> None:
        """Close all of it, for who cannot go on."""
        self.bus.close()
        for database in self.databases:
            database.dispose()


def region(conf: Any, *, for_clients: bool = False) -> Region:
    """Open what the configuration names.

    The API database must be as `kilonova db sync` of this version leaves it: DatabaseEmpty, DatabaseOlder (both pass
    when that is done), DatabaseNewer.

    for_clients: a client of the API waits for what is called over the bus.
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
    except BaseException:
        for database in opened:
            database.dispose()
        raise
    down_after = liveness.down_after(conf.report_interval, conf.service_down_time)
    directory = AgentDirectory(lambda: [cell.database for cell in cells], down_after)
    addresses = _Addresses(cells.api)
    bus = CellBuses(
        open_bus(conf, for_clients=for_clients), lambda url: open_bus(conf, url, for_clients=for_clients),
        lambda cell: addresses.of(cell, conf.transport_url), addresses.cell_of_agent(cells),
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
