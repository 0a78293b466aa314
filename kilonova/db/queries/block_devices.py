"""Block devices of servers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from kilonova.core import clock
from kilonova.core.server import BlockDevice
from kilonova.db.cell_schema import block_device_mapping
from kilonova.sql.engine import Database

_C = block_device_mapping.c
FIELDS: tuple[str, ...] = BlockDevice.__struct_fields__
_COLUMNS = tuple(_C[name] for name in FIELDS)

_INSERT = sa.insert(block_device_mapping)
_OF = sa.select(*_COLUMNS).where(_C.instance_uuid == sa.bindparam("b_uuid")).order_by(_C.id)
_OF_VOLUME = sa.select(_C.instance_uuid).where(_C.volume_id == sa.bindparam("b_volume"))
_DELETE = sa.delete(block_device_mapping).where(_C.uuid == sa.bindparam("b_uuid"))
_DELETE_OF = sa.delete(block_device_mapping).where(_C.instance_uuid == sa.bindparam("b_uuid"))
_CHANGE = {
    name: sa.update(block_device_mapping)
    .where(_C.uuid == sa.bindparam("b_uuid"))
    .values({_C[name]: sa.bindparam("b_value"), _C.updated_at: sa.bindparam("b_now")})
    for name in ("volume_id", "attachment_id", "connection_info", "device_name", "delete_on_termination", "volume_size")
}


def insert(connection: Connection, server: str, devices: Iterable[BlockDevice]) -> None:
    """Add the devices of a server."""
    now = clock.utcnow()
    rows = [
        {name: getattr(device, name) for name in FIELDS} | {"instance_uuid": server, "created_at": now}
        for device in devices
    ]
    if rows:
        connection.execute(_INSERT, rows)


def of(database: Database, server: str) -> list[BlockDevice]:
    """The devices of a server, in the order they were added."""
    with database.read() as connection:
        return read(connection, server)


def read(connection: Connection, server: str) -> list[BlockDevice]:
    """The same on a connection that is there already."""
    rows: Sequence[Any] = connection.execute(_OF, {"b_uuid": server}).all()
    return [BlockDevice(**dict(zip(FIELDS, row, strict=True))) for row in rows]


def servers_with(database: Database, volume: str) -> list[str]:
    """The servers that have a volume."""
    with database.read() as connection:
        return list(connection.execute(_OF_VOLUME, {"b_volume": volume}).scalars())


def change(connection: Connection, uuid: str, **values: Any) -> None:
    """Set some columns of a device."""
    for name, value in values.items():
        connection.execute(_CHANGE[name], {"b_uuid": uuid, "b_value": value, "b_now": clock.utcnow()})


def delete(connection: Connection, uuid: str) -> None:
    """Remove one device."""
    connection.execute(_DELETE, {"b_uuid": uuid})


def delete_of(connection: Connection, server: str) -> None:
    """Remove all devices of a server."""
    connection.execute(_DELETE_OF, {"b_uuid": server})
