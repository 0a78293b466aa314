"""Availability zones: the metadata key `availability_zone` of the aggregates a host is in."""

from __future__ import annotations

import sqlalchemy as sa

from kilonova.db.api_schema import aggregate_hosts, aggregate_metadata
from kilonova.sql.engine import Database

_ZONES = (
    sa.select(aggregate_hosts.c.host, aggregate_metadata.c.value)
    .join(aggregate_metadata, aggregate_metadata.c.aggregate_id == aggregate_hosts.c.aggregate_id)
    .where(aggregate_metadata.c.key == "availability_zone")
)
_ZONE_OF = _ZONES.where(aggregate_hosts.c.host == sa.bindparam("b_host"))


def by_host(database: Database) -> dict[str, str]:
    """The zone of every host that is in one."""
    with database.read() as connection:
        return {row[0]: row[1] for row in connection.execute(_ZONES)}


def of_host(database: Database, host: str) -> str | None:
    """The zone of one host, or None."""
    with database.read() as connection:
        row = connection.execute(_ZONE_OF, {"b_host": host}).first()
        return None if row is None else row[1]
