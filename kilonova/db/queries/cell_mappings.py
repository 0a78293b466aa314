"""The registry of cells and which host is in which."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from kilonova.core import clock
from kilonova.db.api_schema import cell_mappings, host_mappings
from kilonova.sql.engine import Database

_EVERY = sa.select(cell_mappings).order_by(cell_mappings.c.id)
_HOST = sa.select(host_mappings.c.cell_uuid).where(host_mappings.c.host == sa.bindparam("b_host"))


def every(database: Database) -> list[Any]:
    """All rows of the registry, oldest first."""
    with database.read() as connection:
        return list(connection.execute(_EVERY))


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
