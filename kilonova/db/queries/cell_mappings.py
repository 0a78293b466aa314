"""The registry of cells and which host is in which."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from kilonova.core import clock
from kilonova.db.api_schema import cell_mappings, host_mappings, instance_mappings
from kilonova.sql.engine import Database

_CELL: sa.BindParameter[str] = sa.bindparam("b_cell")
_EVERY = sa.select(cell_mappings).order_by(cell_mappings.c.id)
_ONE = sa.select(cell_mappings).where(cell_mappings.c.uuid == _CELL)
_HOST = sa.select(host_mappings.c.cell_uuid).where(host_mappings.c.host == sa.bindparam("b_host"))
_HOSTS = (
    sa.select(cell_mappings.c.name, cell_mappings.c.uuid, host_mappings.c.host)
    .select_from(host_mappings.join(cell_mappings, cell_mappings.c.uuid == host_mappings.c.cell_uuid))
    .order_by(host_mappings.c.id)
)
_DELETE = cell_mappings.delete().where(cell_mappings.c.uuid == _CELL)
_DELETE_HOSTS = host_mappings.delete().where(host_mappings.c.cell_uuid == _CELL)
_DELETE_SERVERS = instance_mappings.delete().where(
    instance_mappings.c.cell_uuid == _CELL, instance_mappings.c.queued_for_delete == sa.true()
)
_SERVERS = (
    sa.select(instance_mappings.c.queued_for_delete, sa.func.count())
    .where(instance_mappings.c.cell_uuid == _CELL)
    .group_by(instance_mappings.c.queued_for_delete)
)


def every(database: Database) -> list[Any]:
    """All rows of the registry, oldest first."""
    with database.read() as connection:
        return rows(connection)


def rows(connection: Connection) -> list[Any]:
    """The same on a connection."""
    return list(connection.execute(_EVERY))


def find(connection: Connection, uuid: str) -> Any | None:
    """A row of the registry, or None."""
    return connection.execute(_ONE, {"b_cell": uuid}).first()


def insert(connection: Connection, row: Mapping[str, Any]) -> None:
    """Add a cell: uuid, name, transport_url, database_connection, disabled."""
    connection.execute(cell_mappings.insert(), dict(row))


def change(connection: Connection, uuid: str, values: Mapping[str, Any]) -> None:
    """Change columns of a cell's row."""
    connection.execute(cell_mappings.update().where(cell_mappings.c.uuid == uuid).values(**values))


def remove(connection: Connection, uuid: str) -> None:
    """Remove a cell, the mappings of its hosts, and those of its deleted servers."""
    for statement in (_DELETE_SERVERS, _DELETE_HOSTS, _DELETE):
        connection.execute(statement, {"b_cell": uuid})


def servers_of(connection: Connection, uuid: str) -> tuple[int, int]:
    """How many servers of a cell there are, and how many were deleted but are on record."""
    counts = {bool(deleted): int(count) for deleted, count in connection.execute(_SERVERS, {"b_cell": uuid})}
    return counts.get(False, 0), counts.get(True, 0)


def hosts(connection: Connection) -> list[tuple[str | None, str, str]]:
    """All hosts as (name of the cell, its uuid, host), in the order of discovery."""
    return [(row.name, row.uuid, row.host) for row in connection.execute(_HOSTS)]


def ensure(database: Database, uuid: str, name: str, transport_url: str, database_connection: str) -> None:
    """Add a cell, or bring its addresses up to date."""
    values = {"name": name, "transport_url": transport_url, "database_connection": database_connection}
    with database.write() as connection:
        changed = connection.execute(
            sa.update(cell_mappings).where(cell_mappings.c.uuid == uuid).values(**values, updated_at=clock.utcnow())
        )
        if not changed.rowcount:
            connection.execute(sa.insert(cell_mappings).values(uuid=uuid, **values))


def cell_of_host(database: Database, host: str) -> str | None:
    """The uuid of a host's cell, or None."""
    with database.read() as connection:
        found: str | None = connection.execute(_HOST, {"b_host": host}).scalar()
        return found
