"""What an operator does with cells and hosts: register, change and remove them, and take new hosts into service.

Works on the databases alone, so that it can be done while nothing runs; processes read the registry when they start.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from kilonova.cells.cells import CELL0
from kilonova.core import ids
from kilonova.core.errors import Conflict, Invalid, NotFound
from kilonova.core.urls import masked_database, masked_transport
from kilonova.db.queries import cell_mappings, hosts, servers, services
from kilonova.sql import address
from kilonova.sql.engine import Database

CELL0_NAME: Final = "cell0"
NO_TRANSPORT: Final = "none:///"
_BATCH: Final = 500


class NoSuchCell(NotFound):
    code, message = "no_such_cell", "There is no cell with the uuid {cell}."


class CellExists(Conflict):
    code = "cell_exists"
    message = "The cell {cell} ({name}) already has the {what} {address}."


class AddressMissing(Invalid):
    code, message = "cell_address_missing", "A cell needs a {what}: give {option}, or set {setting}."


class TransportInvalid(Invalid):
    code = "cell_transport_invalid"
    message = "{address} is no address of a message broker, such as rabbit://USER:PASSWORD@HOST/."


class CellZeroStays(Conflict):
    code, message = "cell0_stays", "cell0 cannot be disabled or enabled."


class CellHasHosts(Conflict):
    code, message = "cell_has_hosts", "The cell {cell} has {count} hosts: remove them, or remove it with --force."


class CellHasServers(Conflict):
    code, message = "cell_has_servers", "The cell {cell} has {count} servers: delete or move them first."


class CellHasDeletedServers(Conflict):
    code = "cell_has_deleted_servers"
    message = "The cell {cell} has records of {count} deleted servers, which --force removes with it."


class CellZeroTaken(Conflict):
    code, message = "cell0_taken", "cell0 is in the registry already, with the database {address}."


class NoSuchHost(NotFound):
    code, message = "no_such_host", "There is no host {host} in any cell."


class HostElsewhere(Conflict):
    code, message = "host_elsewhere", "The host {host} is in the cell {cell}."


class HostHasServers(Conflict):
    code, message = "host_has_servers", "The host {host} has {count} servers: delete or move them first."


@dataclass(frozen=True)
class Found:
    """What discovery found in one cell. elsewhere: hosts that are mapped to another cell, with that cell's uuid."""

    uuid: str
    name: str | None
    hosts: int
    mapped: tuple[str, ...] = ()
    elsewhere: dict[str, str] = field(default_factory=dict)


def map_cell0(api: Database, database_connection: str) -> bool:
    """Register cell0; False when it is there with this database. CellZeroTaken, AddressUnusable."""
    address.parse(database_connection)
    with api.write() as connection:
        row = cell_mappings.find(connection, CELL0)
        if row is None:
            cell_mappings.insert(connection, _row(CELL0, CELL0_NAME, NO_TRANSPORT, database_connection))
            return True
    if row.database_connection != database_connection:
        raise CellZeroTaken(address=masked_database(row.database_connection))
    return False


def create(
    api: Database, *, name: str | None, transport_url: str, database_connection: str, disabled: bool = False
) -> str:
    """Register a cell; answers its uuid. CellExists, TransportInvalid, AddressUnusable."""
    _check(transport_url, database_connection)
    uuid = ids.new_uuid()
    with api.write() as connection:
        _refuse_shared(connection, uuid, transport_url, database_connection)
        cell_mappings.insert(connection, _row(uuid, name, transport_url, database_connection, disabled))
    return uuid


def update(api: Database, uuid: str, *, disabled: bool | None = None, **values: str) -> None:
    """Change a cell: name, transport_url, database_connection. NoSuchCell, CellZeroStays and what `create` raises."""
    with api.write() as connection:
        row = _cell(connection, uuid)
        if disabled is not None and uuid == CELL0:
            raise CellZeroStays
        transport = values.get("transport_url", row.transport_url)
        database = values.get("database_connection", row.database_connection)
        _check(transport, database)
        _refuse_shared(connection, uuid, transport, database)
        changed = dict(values) | ({} if disabled is None else {"disabled": disabled})
        if changed:
            cell_mappings.change(connection, uuid, changed)


def delete(api: Database, uuid: str, *, force: bool = False) -> None:
    """Remove a cell from the registry; its database is left.

    With `force` also one that has hosts, or records of deleted servers. NoSuchCell, CellHasServers, CellHasHosts,
    CellHasDeletedServers.
    """
    with api.write() as connection:
        row = _cell(connection, uuid)
        name = row.name or uuid
        known = [host for _, cell, host in cell_mappings.hosts(connection) if cell == uuid]
        if known and not force:
            raise CellHasHosts(cell=name, count=len(known))
        there, deleted = cell_mappings.servers_of(connection, uuid)
        if there:
            raise CellHasServers(cell=name, count=there)
        if deleted and not force:
            raise CellHasDeletedServers(cell=name, count=deleted)
        cell_mappings.remove(connection, uuid)


def listed(api: Database) -> list[Any]:
    """The rows of the registry by name, cell0 first."""
    return sorted(cell_mappings.every(api), key=lambda row: (row.uuid != CELL0, row.name or "", row.id))


def hosts_of(api: Database, uuid: str | None = None) -> list[tuple[str | None, str, str]]:
    """Hosts as (name of the cell, its uuid, host), of all cells or one. NoSuchCell."""
    with api.read() as connection:
        if uuid is not None:
            _cell(connection, uuid)
        return [row for row in cell_mappings.hosts(connection) if uuid in (None, row[1])]


def delete_host(api: Database, open_database: Callable[[str], Database], uuid: str, host: str) -> None:
    """Take a host out of its cell; one that still reports may come back.

    NoSuchCell, NoSuchHost, HostElsewhere, HostHasServers.
    """
    with api.read() as connection:
        cell = _cell(connection, uuid)
        where = hosts.cells_of(connection, [host]).get(host)
    if where is None:
        raise NoSuchHost(host=host)
    if where != uuid:
        raise HostElsewhere(host=host, cell=where)
    database = open_database(cell.database_connection)
    try:
        there = len(servers.on_host(database, host))
    finally:
        database.dispose()
    if there:
        raise HostHasServers(host=host, count=there)
    with api.write() as connection:
        hosts.unmap_host(connection, host)


def discover(
    api: Database, open_database: Callable[[str], Database], uuid: str | None = None, *, by_service: bool = False
) -> list[Found]:
    """Map the hosts that have reported and are not mapped, in every cell or one.

    by_service: by their service rather than their compute node. NoSuchCell.
    """
    with api.read() as connection:
        cells = [_cell(connection, uuid)] if uuid is not None else cell_mappings.rows(connection)
    found = []
    for cell in (cell for cell in cells if cell.uuid != CELL0):
        database = open_database(cell.database_connection)
        try:
            with database.read() as connection:
                names = _reporting(connection, by_service)
        finally:
            database.dispose()
        found.append(_map(api, cell, names))
    return found


def _reporting(connection: Any, by_service: bool) -> list[str]:
    if not by_service:
        return hosts.hosts_of_cell(connection)
    return [service.host for service in services.list_services(connection, binary=hosts.COMPUTE)]


def _map(api: Database, cell: Any, names: list[str]) -> Found:
    mapped: list[str] = []
    elsewhere: dict[str, str] = {}
    for batch in _batches(names):
        mapped += hosts.map_hosts(api, cell.uuid, batch)
        with api.read() as connection:
            where = hosts.cells_of(connection, batch)
        elsewhere |= {host: other for host, other in where.items() if other != cell.uuid}
    return Found(cell.uuid, cell.name, len(names), tuple(mapped), elsewhere)


def _batches(names: list[str]) -> Iterable[list[str]]:
    return (names[start : start + _BATCH] for start in range(0, len(names), _BATCH))


def _cell(connection: Any, uuid: str) -> Any:
    row = cell_mappings.find(connection, uuid)
    if row is None:
        raise NoSuchCell(cell=uuid)
    return row


def _check(transport_url: str, database_connection: str) -> None:
    address.parse(database_connection)
    scheme, separator, _ = transport_url.partition("://")
    if not scheme or not separator:
        raise TransportInvalid(address=masked_transport(transport_url))


def _refuse_shared(connection: Any, uuid: str, transport_url: str, database_connection: str) -> None:
    """Two cells on one database or one broker's virtual host would take each other's servers and messages."""
    for row in cell_mappings.rows(connection):
        if row.uuid == uuid:
            continue
        if row.database_connection == database_connection:
            shown = masked_database(database_connection)
            raise CellExists(cell=row.uuid, name=row.name or "no name", what="database", address=shown)
        if row.transport_url == transport_url:
            shown = masked_transport(transport_url)
            raise CellExists(cell=row.uuid, name=row.name or "no name", what="transport URL", address=shown)


def _row(
    uuid: str, name: str | None, transport_url: str, database_connection: str, disabled: bool = False
) -> dict[str, Any]:
    return {
        "uuid": uuid, "name": name, "transport_url": transport_url, "database_connection": database_connection,
        "disabled": disabled,
    }  # fmt: skip
