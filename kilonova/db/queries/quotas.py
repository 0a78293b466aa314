"""Limits that differ from the defaults, and what a project uses: counted in the transaction that creates."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.dialects import mysql
from sqlalchemy.engine import Connection

from kilonova.core import clock
from kilonova.db.api_schema import instance_mappings, project_user_quotas, quota_classes, quota_locks, quotas

_M = instance_mappings.c
_LIMITS = sa.select(quotas.c.resource, quotas.c.hard_limit).where(quotas.c.project_id == sa.bindparam("b_project"))
_USER_LIMITS = sa.select(project_user_quotas.c.resource, project_user_quotas.c.hard_limit).where(
    sa.and_(
        project_user_quotas.c.project_id == sa.bindparam("b_project"),
        project_user_quotas.c.user_id == sa.bindparam("b_user"),
    )
)
_CLASS_LIMITS = sa.select(quota_classes.c.resource, quota_classes.c.hard_limit).where(
    quota_classes.c.class_name == sa.bindparam("b_class")
)
_SUMS = (
    sa.func.count(),
    sa.func.coalesce(sa.func.sum(_M.vcpus), 0),
    sa.func.coalesce(sa.func.sum(_M.memory_mb), 0),
)
_USED = sa.select(*_SUMS).where(
    sa.and_(_M.project_id == sa.bindparam("b_project"), _M.queued_for_delete == sa.false())
)
_USED_BY = _USED.where(_M.user_id == sa.bindparam("b_user"))
_LOCKED = {"project_id": sa.bindparam("b_project"), "taken": 1}


@cache
def _lock(dialect: str) -> sa.Executable | None:
    """One statement that takes the row's lock whether the row is there or not: with two, first requests would deadlock.

    None on SQLite, where BEGIN IMMEDIATE has done that already.
    """
    if dialect == "sqlite":
        return None
    if dialect == "postgresql":
        from sqlalchemy.dialects import postgresql  # a thirtieth of a second, which a start on SQLite does not need

        insert = postgresql.insert(quota_locks).values(_LOCKED)
        taken = {"taken": quota_locks.c.taken + 1}
        return insert.on_conflict_do_update(index_elements=[quota_locks.c.project_id], set_=taken)
    return mysql.insert(quota_locks).values(_LOCKED).on_duplicate_key_update(taken=quota_locks.c.taken + 1)


class Used(NamedTuple):
    """What servers use. ram in MiB."""

    instances: int
    cores: int
    ram: int


def lock(connection: Connection, project_id: str) -> None:
    """Make the counting requests of a project wait for each other until this transaction ends."""
    statement = _lock(connection.dialect.name)
    if statement is not None:
        connection.execute(statement, {"b_project": project_id})


def used(connection: Connection, project_id: str, user_id: str | None = None) -> Used:
    """What the project's servers use, or only one user's; servers on their way out do not count."""
    if user_id is None:
        row = connection.execute(_USED, {"b_project": project_id}).one()
    else:
        row = connection.execute(_USED_BY, {"b_project": project_id, "b_user": user_id}).one()
    return Used(int(row[0]), int(row[1]), int(row[2]))


def limits(connection: Connection, project_id: str) -> dict[str, int]:
    """The project's own limits."""
    return _by_resource(connection.execute(_LIMITS, {"b_project": project_id}))


def user_limits(connection: Connection, project_id: str, user_id: str) -> dict[str, int]:
    """The limits of one user within the project."""
    rows = connection.execute(_USER_LIMITS, {"b_project": project_id, "b_user": user_id})
    return _by_resource(rows)


def class_limits(connection: Connection, name: str) -> dict[str, int]:
    """The limits of a quota class; `default` holds for every project that has none of its own."""
    return _by_resource(connection.execute(_CLASS_LIMITS, {"b_class": name}))


def _by_resource(rows: Any) -> dict[str, int]:
    return {row[0]: int(row[1]) for row in rows}


# -- changes

_Q, _U, _C = quotas.c, project_user_quotas.c, quota_classes.c
_RESOURCE: sa.BindParameter[str] = sa.bindparam("b_resource")
_SET = (
    sa.update(quotas)
    .where(_Q.project_id == sa.bindparam("b_project"), _Q.resource == _RESOURCE)
    .values(hard_limit=sa.bindparam("b_limit"), updated_at=sa.bindparam("b_now"))
)
_SET_USER = (
    sa.update(project_user_quotas)
    .where(
        _U.project_id == sa.bindparam("b_project"), _U.user_id == sa.bindparam("b_user"), _U.resource == _RESOURCE
    )
    .values(hard_limit=sa.bindparam("b_limit"), updated_at=sa.bindparam("b_now"))
)
_SET_CLASS = (
    sa.update(quota_classes)
    .where(_C.class_name == sa.bindparam("b_class"), _C.resource == _RESOURCE)
    .values(hard_limit=sa.bindparam("b_limit"), updated_at=sa.bindparam("b_now"))
)
_ADD, _ADD_USER, _ADD_CLASS = sa.insert(quotas), sa.insert(project_user_quotas), sa.insert(quota_classes)
_DROP = sa.delete(quotas).where(_Q.project_id == sa.bindparam("b_project"))
_DROP_USERS = sa.delete(project_user_quotas).where(_U.project_id == sa.bindparam("b_project"))
_DROP_USER = _DROP_USERS.where(_U.user_id == sa.bindparam("b_user"))


def set_limits(connection: Connection, project_id: str, wanted: Mapping[str, int]) -> None:
    """Give a project limits of its own. Under `lock`, so that nobody else adds the same rows."""
    for resource, limit in sorted(wanted.items()):
        values = {"b_project": project_id, "b_resource": resource, "b_limit": limit, "b_now": clock.utcnow()}
        if connection.execute(_SET, values).rowcount == 0:
            connection.execute(_ADD, {"project_id": project_id, "resource": resource, "hard_limit": limit})


def set_user_limits(connection: Connection, project_id: str, user_id: str, wanted: Mapping[str, int]) -> None:
    """Give a user limits within a project. Under `lock` of the project."""
    for resource, limit in sorted(wanted.items()):
        values = {"b_project": project_id, "b_user": user_id, "b_resource": resource, "b_limit": limit,
                  "b_now": clock.utcnow()}  # fmt: skip
        if connection.execute(_SET_USER, values).rowcount == 0:
            row = {"project_id": project_id, "user_id": user_id, "resource": resource, "hard_limit": limit}
            connection.execute(_ADD_USER, row)


def set_class_limits(connection: Connection, name: str, wanted: Mapping[str, int]) -> None:
    """Give a quota class limits. Under `lock` of the name."""
    for resource, limit in sorted(wanted.items()):
        values = {"b_class": name, "b_resource": resource, "b_limit": limit, "b_now": clock.utcnow()}
        if connection.execute(_SET_CLASS, values).rowcount == 0:
            connection.execute(_ADD_CLASS, {"class_name": name, "resource": resource, "hard_limit": limit})


def drop_limits(connection: Connection, project_id: str) -> None:
    """Take a project's limits away, its users' too: the defaults hold again."""
    connection.execute(_DROP, {"b_project": project_id})
    connection.execute(_DROP_USERS, {"b_project": project_id})


def drop_user_limits(connection: Connection, project_id: str, user_id: str) -> None:
    """Take one user's limits within a project away."""
    connection.execute(_DROP_USER, {"b_project": project_id, "b_user": user_id})
