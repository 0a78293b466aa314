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


# -- groups themselves

_PAGE = _GROUPS.order_by(_G.id)
_PAGE_OF = _PAGE.where(_G.project_id == sa.bindparam("b_project"))
_MEMBERS_OF = (
    sa.select(_M.group_id, _M.instance_uuid)
    .where(_M.group_id.in_(sa.bindparam("b_ids", expanding=True)))
    .order_by(_M.id)
)
_COUNT_OF = sa.select(sa.func.count()).select_from(instance_groups).where(_G.project_id == sa.bindparam("b_project"))
_INSERT = sa.insert(instance_groups)
_INSERT_POLICY = sa.insert(instance_group_policy)
_DELETE = sa.delete(instance_groups).where(_G.uuid == sa.bindparam("b_uuid"))


def every(database: Database, project_id: str | None) -> list[Any]:
    """The groups of a project, or of everybody, oldest first."""
    with database.read() as connection:
        if project_id is None:
            return list(connection.execute(_PAGE))
        return list(connection.execute(_PAGE_OF, {"b_project": project_id}))


def members_of(database: Database, group_ids: Sequence[int]) -> dict[int, list[str]]:
    """The servers of several groups, in the order they joined."""
    found: dict[int, list[str]] = {}
    with database.read() as connection:
        for group, server in connection.execute(_MEMBERS_OF, {"b_ids": list(group_ids)}):
            found.setdefault(group, []).append(server)
    return found


def count_of(connection: Connection, project_id: str) -> int:
    """How many groups a project has."""
    return int(connection.execute(_COUNT_OF, {"b_project": project_id}).scalar_one())


def insert(
    connection: Connection, uuid: str, name: str, policy: str, rules: str, project_id: str, user_id: str
) -> None:
    """Add a group; rules as JSON."""
    row = {"uuid": uuid, "name": name, "project_id": project_id, "user_id": user_id, "created_at": clock.utcnow()}
    key = connection.execute(_INSERT, row).inserted_primary_key
    assert key is not None
    connection.execute(_INSERT_POLICY, {"group_id": key[0], "policy": policy, "rules": rules})


def delete(connection: Connection, uuid: str) -> bool:
    """Remove a group with its members' rows; False when it is gone."""
    return connection.execute(_DELETE, {"b_uuid": uuid}).rowcount == 1
