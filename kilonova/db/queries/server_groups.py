"""Server groups with their policy and members."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from kilonova.core import clock
from kilonova.db.api_schema import instance_group_member, instance_group_policy, instance_groups
from kilonova.sql.engine import Database

_G, _P, _M = instance_groups.c, instance_group_policy.c, instance_group_member.c

_GROUPS = sa.select(instance_groups, _P.policy, _P.rules).join(instance_group_policy, _P.group_id == _G.id)
_ONE = _GROUPS.where(_G.uuid == sa.bindparam("b_uuid"))
_MEMBERS = sa.select(_M.instance_uuid).where(_M.group_id == sa.bindparam("b_id")).order_by(_M.id)
_ID = sa.select(_G.id).where(_G.uuid == sa.bindparam("b_uuid"))
_COUNT = (
    sa.select(sa.func.count())
    .select_from(instance_group_member.join(instance_groups, _M.group_id == _G.id))
    .where(_G.uuid == sa.bindparam("b_uuid"))
)
_INSERT_MEMBER = sa.insert(instance_group_member)
_GROUP_OF = (
    sa.select(_G.uuid)
    .join(instance_group_member, _M.group_id == _G.id)
    .where(_M.instance_uuid == sa.bindparam("b_server"))
)


def get(database: Database, uuid: str) -> Any | None:
    """A group with its policy and rules, or None."""
    with database.read() as connection:
        return connection.execute(_ONE, {"b_uuid": uuid}).first()


def members(database: Database, group_id: int) -> list[str]:
    """The servers of a group, in the order they joined."""
    with database.read() as connection:
        return list(connection.execute(_MEMBERS, {"b_id": group_id}).scalars())


def group_of(database: Database, server: str) -> str | None:
    """The uuid of the group a server is in, or None."""
    with database.read() as connection:
        found: str | None = connection.execute(_GROUP_OF, {"b_server": server}).scalar()
        return found


def count(connection: Connection, uuid: str) -> int:
    """How many members a group has."""
    return int(connection.execute(_COUNT, {"b_uuid": uuid}).scalar_one())


def add(connection: Connection, uuid: str, servers: Sequence[str]) -> None:
    """Make servers members of a group."""
    group = connection.execute(_ID, {"b_uuid": uuid}).scalar_one()
    now = clock.utcnow()
    rows = [{"group_id": group, "instance_uuid": server, "created_at": now} for server in servers]
    connection.execute(_INSERT_MEMBER, rows)
