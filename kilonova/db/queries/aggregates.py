"""Host aggregates with their hosts and metadata; an availability zone is the metadata key `availability_zone`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import sqlalchemy as sa

from kilonova.core import clock
from kilonova.db.api_schema import aggregate_hosts, aggregate_metadata, aggregates, host_mappings
from kilonova.sql.engine import Connection, Database

ZONE: Final = "availability_zone"

_A, _H, _M = aggregates.c, aggregate_hosts.c, aggregate_metadata.c

_ALL = sa.select(aggregates).order_by(_A.id)
_ONE = sa.select(aggregates).where(_A.id == sa.bindparam("b_id"))
_HOSTS = sa.select(_H.aggregate_id, _H.host).order_by(_H.id)
_METADATA = sa.select(_M.aggregate_id, _M.key, _M.value).order_by(_M.id)
_HOSTS_OF = _HOSTS.where(_H.aggregate_id == sa.bindparam("b_id"))
_METADATA_OF = _METADATA.where(_M.aggregate_id == sa.bindparam("b_id"))
_WITH_HOST = sa.select(_H.aggregate_id).where(_H.host == sa.bindparam("b_host")).order_by(_H.aggregate_id)
_ZONES = (
    sa.select(_H.host, _H.aggregate_id, _M.value)
    .join(aggregate_metadata, _M.aggregate_id == _H.aggregate_id)
    .where(_M.key == ZONE, _H.host.in_(sa.bindparam("b_hosts", expanding=True)))
)
_INSERT = sa.insert(aggregates)
_RENAME = (
    sa.update(aggregates)
    .where(_A.id == sa.bindparam("b_id"))
    .values(name=sa.bindparam("b_name"), updated_at=sa.bindparam("b_now"))
)
_DELETE = sa.delete(aggregates).where(
    _A.id == sa.bindparam("b_id"), sa.not_(sa.exists().where(_H.aggregate_id == _A.id))
)
_ADD_HOST = sa.insert(aggregate_hosts)
_DROP_HOST = sa.delete(aggregate_hosts).where(
    _H.aggregate_id == sa.bindparam("b_id"), _H.host == sa.bindparam("b_host")
)
_ADD_KEY = sa.insert(aggregate_metadata)
_SET_KEY = (
    sa.update(aggregate_metadata)
    .where(_M.aggregate_id == sa.bindparam("b_id"), _M.key == sa.bindparam("b_key"))
    .values(value=sa.bindparam("b_value"), updated_at=sa.bindparam("b_now"))
)
_DROP_KEY = sa.delete(aggregate_metadata).where(
    _M.aggregate_id == sa.bindparam("b_id"), _M.key == sa.bindparam("b_key")
)
_LOCK = _ONE.with_for_update()  # SQLite has the whole file locked already, and leaves the clause out
_LOCK_HOSTS = (
    sa.select(host_mappings.c.id)
    .where(host_mappings.c.host.in_(sa.bindparam("b_hosts", expanding=True)))
    .order_by(host_mappings.c.id)
    .with_for_update()
)


@dataclass(frozen=True, slots=True)
class Aggregate:
    """An aggregate; hosts in the order they joined."""

    id: int
    uuid: str
    name: str
    hosts: tuple[str, ...]
    metadata: Mapping[str, str]
    created_at: datetime
    updated_at: datetime | None

    @property
    def zone(self) -> str | None:
        """The availability zone that it makes of its hosts, or None."""
        return self.metadata.get(ZONE)


def every(database: Database) -> list[Aggregate]:
    """All aggregates, oldest first."""
    with database.read() as connection:
        rows = connection.execute(_ALL).all()
        hosts = _by_aggregate(connection.execute(_HOSTS))
        metadata = _by_aggregate(connection.execute(_METADATA))
    return [_aggregate(row, hosts.get(row.id, []), metadata.get(row.id, [])) for row in rows]


def read(connection: Connection, number: int) -> Aggregate | None:
    """One aggregate by its number, or None."""
    return _read(connection, number, _ONE)


def _read(connection: Connection, number: int, statement: sa.Select[Any]) -> Aggregate | None:
    row = connection.execute(statement, {"b_id": number}).first()
    if row is None:
        return None
    hosts = _by_aggregate(connection.execute(_HOSTS_OF, {"b_id": number}))
    metadata = _by_aggregate(connection.execute(_METADATA_OF, {"b_id": number}))
    return _aggregate(row, hosts.get(number, []), metadata.get(number, []))


def get(database: Database, number: int) -> Aggregate | None:
    """The same on a connection of its own."""
    with database.read() as connection:
        return read(connection, number)


def with_host(database: Database, host: str) -> list[int]:
    """The numbers of the aggregates that a host is in."""
    with database.read() as connection:
        return list(connection.execute(_WITH_HOST, {"b_host": host}).scalars())


def zones_beside(connection: Connection, hosts: Sequence[str], number: int) -> dict[str, str]:
    """The zone of each of these hosts that is in one through an aggregate other than `number`."""
    rows = connection.execute(_ZONES, {"b_hosts": list(hosts)})
    return {row.host: row.value for row in rows if row.aggregate_id != number}


def _by_aggregate(rows: Any) -> dict[int, list[Any]]:
    found: dict[int, list[Any]] = {}
    for number, *rest in rows:
        found.setdefault(number, []).append(rest[0] if len(rest) == 1 else tuple(rest))
    return found


def _aggregate(row: Any, hosts: Sequence[str], metadata: Sequence[tuple[str, str]]) -> Aggregate:
    return Aggregate(row.id, row.uuid, row.name, tuple(hosts), dict(metadata), row.created_at, row.updated_at)


# -- changes


def locked(connection: Connection, number: int) -> Aggregate | None:
    """The aggregate, which nobody else changes until this transaction ends; None when it is gone."""
    return _read(connection, number, _LOCK)


def lock_hosts(connection: Connection, hosts: Sequence[str]) -> None:
    """Make changes of these hosts' zones wait for each other until this transaction ends."""
    connection.execute(_LOCK_HOSTS, {"b_hosts": list(hosts)}).all()


def insert(connection: Connection, uuid: str, name: str) -> int:
    """Add an empty aggregate; answers its number. IntegrityError when the name is taken."""
    key = connection.execute(
        _INSERT, {"uuid": uuid, "name": name, "created_at": clock.utcnow()}
    ).inserted_primary_key
    assert key is not None
    return int(key[0])


def taken(error: Exception) -> bool:
    """Whether a unique value is there already."""
    return isinstance(error, sa.exc.IntegrityError)


def rename(connection: Connection, number: int, name: str) -> None:
    """Give it another name. IntegrityError when that is taken."""
    connection.execute(_RENAME, {"b_id": number, "b_name": name, "b_now": clock.utcnow()})


def delete(connection: Connection, number: int) -> bool:
    """Remove an aggregate without hosts; False when it has some, or is gone."""
    return connection.execute(_DELETE, {"b_id": number}).rowcount == 1


def add_host(connection: Connection, number: int, host: str) -> None:
    """Take a host in. IntegrityError when it is in already."""
    connection.execute(_ADD_HOST, {"aggregate_id": number, "host": host, "created_at": clock.utcnow()})


def drop_host(connection: Connection, number: int, host: str) -> bool:
    """Let a host go; False when it was not in."""
    return connection.execute(_DROP_HOST, {"b_id": number, "b_host": host}).rowcount == 1


def set_metadata(connection: Connection, number: int, changes: Mapping[str, str | None]) -> None:
    """Set keys, new or not; None removes a key."""
    now = clock.utcnow()
    for key, value in sorted(changes.items()):
        if value is None:
            connection.execute(_DROP_KEY, {"b_id": number, "b_key": key})
            continue
        values = {"b_id": number, "b_key": key, "b_value": value, "b_now": now}
        if connection.execute(_SET_KEY, values).rowcount == 0:
            connection.execute(
                _ADD_KEY, {"aggregate_id": number, "key": key, "value": value, "created_at": now}
            )
