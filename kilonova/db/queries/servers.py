"""Servers in a cell: read, insert, and change by compare-and-swap.

Every change raises `version`. A statement for a set of columns is built once and kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import cache
from typing import Any

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from kilonova.core import clock
from kilonova.core.server import Fault, Server, ServerExtra
from kilonova.db.cell_schema import instance_extra, instance_faults, instances, tags
from kilonova.sql.engine import Database

I = instances.c  # noqa: E741  # the columns are named in nearly every line
FIELDS: tuple[str, ...] = Server.__struct_fields__
COLUMNS = tuple(instances.c[name] for name in FIELDS)

_BY_UUID = sa.select(*COLUMNS).where(sa.and_(I.uuid == sa.bindparam("b_uuid"), I.deleted == sa.false()))
_BY_UUID_DELETED = sa.select(*COLUMNS).where(I.uuid == sa.bindparam("b_uuid"))
_BY_UUIDS = sa.select(*COLUMNS).where(I.uuid.in_(sa.bindparam("b_uuids", expanding=True)))
_ON_HOST = sa.select(*COLUMNS).where(sa.and_(I.host == sa.bindparam("b_host"), I.deleted == sa.false()))
_EXTRA = sa.select(instance_extra).where(instance_extra.c.instance_uuid.in_(sa.bindparam("b_uuids", expanding=True)))
_INSERT = sa.insert(instances)
_INSERT_EXTRA = sa.insert(instance_extra)
_INSERT_TAG = sa.insert(tags)
_TAGS = (
    sa.select(tags.c.resource_id, tags.c.tag)
    .where(tags.c.resource_id.in_(sa.bindparam("b_uuids", expanding=True)))
    .order_by(tags.c.tag)
)
_FAULTS = (
    sa.select(instance_faults)
    .where(instance_faults.c.instance_uuid.in_(sa.bindparam("b_uuids", expanding=True)))
    .order_by(instance_faults.c.id)
)
_INSERT_FAULT = sa.insert(instance_faults)


def from_row(row: Sequence[Any]) -> Server:
    """The value of a row of COLUMNS."""
    return Server(**dict(zip(FIELDS, row, strict=True)))


def read(connection: Connection, uuid: str, *, deleted: bool = False) -> Server | None:
    """A server that is not deleted (or is, when asked for), or None."""
    row = connection.execute(_BY_UUID_DELETED if deleted else _BY_UUID, {"b_uuid": uuid}).first()
    return None if row is None else from_row(row)


def get(database: Database, uuid: str, *, deleted: bool = False) -> Server | None:
    """The same on a connection of its own."""
    with database.read() as connection:
        return read(connection, uuid, deleted=deleted)


def several(database: Database, uuids: Sequence[str]) -> list[Server]:
    """The servers of some uuids, deleted ones too, in no order."""
    with database.read() as connection:
        return [from_row(row) for row in connection.execute(_BY_UUIDS, {"b_uuids": list(uuids)})]


def on_host(database: Database, host: str) -> list[Server]:
    """The servers on a host that are not deleted."""
    with database.read() as connection:
        return [from_row(row) for row in connection.execute(_ON_HOST, {"b_host": host})]


def insert(connection: Connection, server: Server, extra: ServerExtra, server_tags: Iterable[str] = ()) -> None:
    """Insert a server with its extra row and tags; the uuid must be new to the cell."""
    row = {name: getattr(server, name) for name in FIELDS if name != "id"}
    connection.execute(_INSERT, row)
    connection.execute(_INSERT_EXTRA, {
        "instance_uuid": server.uuid,
        "user_data": extra.user_data,
        "personality": _text(extra.personality),
        "trusted_certs": _text(extra.trusted_certs),
        "keypairs": _text(extra.keypairs),
        "numa_topology": extra.numa_topology,
        "pci_requests": extra.pci_requests,
    })  # fmt: skip
    rows = [{"resource_id": server.uuid, "tag": tag} for tag in dict.fromkeys(server_tags)]
    if rows:
        connection.execute(_INSERT_TAG, rows)


def taken(error: Exception) -> bool:
    """Whether an error of insert says that the cell has the server already."""
    return isinstance(error, sa.exc.IntegrityError)


def _text(value: Any) -> str | None:
    return msgspec.json.encode(value).decode() if value else None


@cache
def _update(
    columns: tuple[str, ...],
    tasks: tuple[str | None, ...] | None,
    states: tuple[str, ...] | None,
    not_tasks: tuple[str, ...],
    versioned: bool,
) -> sa.Update:
    conditions: list[Any] = [I.uuid == sa.bindparam("b_uuid"), I.deleted == sa.false()]
    if states is not None:
        conditions.append(I.vm_state.in_(states))
    if tasks is not None:
        named = [task for task in tasks if task is not None]
        options: list[Any] = [I.task_state.in_(named)] if named else []
        if None in tasks:
            options.append(I.task_state.is_(None))
        conditions.append(sa.or_(*options))
    if not_tasks:
        conditions.append(sa.or_(I.task_state.is_(None), I.task_state.not_in(not_tasks)))
    if versioned:
        conditions.append(I.version == sa.bindparam("b_version"))
    values = {instances.c[name]: sa.bindparam(f"v_{name}", type_=instances.c[name].type) for name in columns}
    return (
        sa.update(instances)
        .where(sa.and_(*conditions))
        .values({**values, I.version: I.version + 1, I.updated_at: sa.bindparam("v_now")})
    )


def change(
    connection: Connection,
    uuid: str,
    values: dict[str, Any],
    *,
    tasks: tuple[str | None, ...] | None = None,
    states: tuple[str, ...] | None = None,
    not_tasks: tuple[str, ...] = (),
    version: int | None = None,
) -> bool:
    """Set columns of a server if its task_state and vm_state are among those given and its version is as given.

    not_tasks: task states in which the row is left alone.
    None leaves a condition out. False when the row is not as expected, is deleted, or is not there.
    """
    statement = _update(tuple(sorted(values)), tasks, states, not_tasks, version is not None)
    parameters = {f"v_{name}": value for name, value in values.items()}
    parameters |= {"b_uuid": uuid, "v_now": clock.utcnow()}
    if version is not None:
        parameters["b_version"] = version
    return connection.execute(statement, parameters).rowcount == 1


def extras(database: Database, uuids: Sequence[str]) -> dict[str, ServerExtra]:
    """The extra rows by uuid."""
    with database.read() as connection:
        rows = connection.execute(_EXTRA, {"b_uuids": list(uuids)})
        return {row.instance_uuid: ServerExtra(
            user_data=row.user_data,
            personality=msgspec.json.decode(row.personality) if row.personality else [],
            trusted_certs=msgspec.json.decode(row.trusted_certs) if row.trusted_certs else None,
            keypairs=msgspec.json.decode(row.keypairs) if row.keypairs else [],
            numa_topology=row.numa_topology,
            pci_requests=row.pci_requests,
        ) for row in rows}  # fmt: skip


_SET_TOPOLOGY = (
    sa.update(instance_extra)
    .where(instance_extra.c.instance_uuid == sa.bindparam("b_uuid"))
    .values(numa_topology=sa.bindparam("v_topology"), updated_at=sa.bindparam("v_now"))
)


def set_topology(connection: Connection, uuid: str, topology: str | None) -> None:
    """Write down which cells and CPUs of its host a server has; None when it has none any more."""
    connection.execute(_SET_TOPOLOGY, {"b_uuid": uuid, "v_topology": topology, "v_now": clock.utcnow()})


def tags_of(database: Database, uuids: Sequence[str]) -> dict[str, list[str]]:
    """The tags by uuid, sorted."""
    found: dict[str, list[str]] = {}
    with database.read() as connection:
        for uuid, tag in connection.execute(_TAGS, {"b_uuids": list(uuids)}):
            found.setdefault(uuid, []).append(tag)
    return found


def faults_of(database: Database, uuids: Sequence[str]) -> dict[str, Fault]:
    """The latest fault by uuid."""
    with database.read() as connection:
        rows = connection.execute(_FAULTS, {"b_uuids": list(uuids)})
        return {row.instance_uuid: Fault(row.code, row.message, row.details, row.host, row.created_at) for row in rows}


def add_fault(connection: Connection, uuid: str, code: int, message: str, details: str, host: str | None) -> None:
    """Record what went wrong; the message is cut to 255 characters."""
    row = {"instance_uuid": uuid, "code": code, "message": message[:255], "details": details, "host": host,
           "created_at": clock.utcnow()}  # fmt: skip
    connection.execute(_INSERT_FAULT, row)


_DELETE = (
    sa.update(instances)
    .where(sa.and_(I.uuid == sa.bindparam("b_uuid"), I.deleted == sa.false()))
    .values(
        deleted=True, vm_state="deleted", task_state=None, power_state=0,
        deleted_at=sa.bindparam("v_now"), terminated_at=sa.bindparam("v_now"), updated_at=sa.bindparam("v_now"),
        version=I.version + 1,
    )
)  # fmt: skip


def mark_deleted(connection: Connection, uuid: str, now: datetime) -> bool:
    """The last act of a delete; False when the row was deleted already."""
    return connection.execute(_DELETE, {"b_uuid": uuid, "v_now": now}).rowcount == 1


_HOSTS = sa.select(I.uuid, I.host).where(
    sa.and_(I.uuid.in_(sa.bindparam("b_uuids", expanding=True)), I.deleted == sa.false())
)


def hosts_of(database: Database, uuids: Sequence[str]) -> dict[str, str | None]:
    """The host of each of these servers that is there; None for one without."""
    with database.read() as connection:
        return {row[0]: row[1] for row in connection.execute(_HOSTS, {"b_uuids": list(uuids)})}


_DROP_TAGS = sa.delete(tags).where(tags.c.resource_id == sa.bindparam("b_uuid"))


def replace_tags(connection: Connection, uuid: str, names: Iterable[str]) -> None:
    """Set a server's tags."""
    connection.execute(_DROP_TAGS, {"b_uuid": uuid})
    rows = [{"resource_id": uuid, "tag": tag} for tag in dict.fromkeys(names)]
    if rows:
        connection.execute(_INSERT_TAG, rows)
