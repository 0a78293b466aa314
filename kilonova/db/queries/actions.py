"""Instance actions and their events: what was done to a server, by whom, and how each part ended."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from kilonova.core import clock
from kilonova.core.context import Context
from kilonova.db.cell_schema import instance_actions, instance_actions_events
from kilonova.sql.engine import Database

_A, _E = instance_actions.c, instance_actions_events.c

_INSERT = sa.insert(instance_actions)
_INSERT_EVENT = sa.insert(instance_actions_events)
_FIND = (
    sa.select(_A.id)
    .where(sa.and_(_A.instance_uuid == sa.bindparam("b_uuid"), _A.request_id == sa.bindparam("b_request"),
                   _A.action == sa.bindparam("b_action")))
    .order_by(_A.id.desc())
    .limit(1)
)  # fmt: skip
_ID_OF = sa.select(_A.id).where(
    sa.and_(_A.instance_uuid == sa.bindparam("b_uuid"), _A.request_id == sa.bindparam("b_request"),
            _A.action == sa.bindparam("b_action"))
)  # fmt: skip
_OPEN_EVENT = sa.insert(instance_actions_events).from_select(
    ["action_id", "event", "start_time", "host", "created_at"],
    sa.select(
        sa.func.max(_A.id), sa.bindparam("b_event", type_=sa.String), sa.bindparam("b_now", type_=sa.DateTime),
        sa.bindparam("b_host", type_=sa.String), sa.bindparam("b_now2", type_=sa.DateTime),
    )
    .where(sa.and_(_A.instance_uuid == sa.bindparam("b_uuid"), _A.request_id == sa.bindparam("b_request"),
                   _A.action == sa.bindparam("b_action")))
    .having(sa.func.max(_A.id).is_not(None)),
)  # fmt: skip
_CLOSE_EVENTS = (
    sa.update(instance_actions_events)
    .where(sa.and_(_E.action_id == sa.bindparam("b_id"), _E.finish_time.is_(None)))
    .values(
        finish_time=sa.bindparam("b_now"), updated_at=sa.bindparam("b_now"), result=sa.bindparam("b_result"),
        traceback=sa.bindparam("b_traceback"), details=sa.bindparam("b_details"),
    )
)  # fmt: skip
_CLOSE = (
    sa.update(instance_actions)
    .where(_A.id == sa.bindparam("b_id"))
    .values(finish_time=sa.bindparam("b_now"), updated_at=sa.bindparam("b_now"), message=sa.bindparam("b_message"))
)
_LIST = (
    sa.select(instance_actions)
    .where(_A.instance_uuid == sa.bindparam("b_uuid"))
    .order_by(_A.created_at.desc(), _A.id.desc())
)
_SHOW = (
    sa.select(instance_actions)
    .where(sa.and_(_A.instance_uuid == sa.bindparam("b_uuid"), _A.request_id == sa.bindparam("b_request")))
    .order_by(_A.id.desc())
    .limit(1)
)
_EVENTS = sa.select(instance_actions_events).where(_E.action_id == sa.bindparam("b_id")).order_by(_E.id.desc())


def start(connection: Connection, server: str, action: str, ctx: Context) -> None:
    """Record that a request begins to do something to a server."""
    now = clock.utcnow()
    connection.execute(_INSERT, {
        "instance_uuid": server, "action": action, "request_id": ctx.request_id, "user_id": ctx.user_id,
        "project_id": ctx.project_id, "start_time": now, "created_at": now,
    })  # fmt: skip


def finished(connection: Connection, server: str, action: str, ctx: Context) -> None:
    """Record something that was done within the request."""
    now = clock.utcnow()
    connection.execute(_INSERT, {
        "instance_uuid": server, "action": action, "request_id": ctx.request_id, "user_id": ctx.user_id,
        "project_id": ctx.project_id, "start_time": now, "finish_time": now, "created_at": now, "updated_at": now,
    })  # fmt: skip


def open_event(connection: Connection, server: str, action: str, request_id: str, event: str, host: str | None) -> None:
    """Record that a part of an action begins on a host; nothing when the action is not there."""
    now = clock.utcnow()
    connection.execute(_OPEN_EVENT, {"b_uuid": server, "b_action": action, "b_request": request_id, "b_event": event,
                                     "b_now": now, "b_now2": now, "b_host": host})  # fmt: skip


def close_events(
    connection: Connection, server: str, action: str, request_id: str, *, traceback: str | None, details: str | None
) -> int | None:
    """Record how the open events of an action end: Error with a traceback, or Success. Answers the action's id."""
    key = {"b_uuid": server, "b_action": action, "b_request": request_id}
    found: int | None = connection.execute(_FIND, key).scalar()
    if found is not None:
        result = "Success" if traceback is None else "Error"
        connection.execute(_CLOSE_EVENTS, {"b_id": found, "b_now": clock.utcnow(), "b_result": result,
                                           "b_traceback": traceback, "b_details": details})  # fmt: skip
    return found


def close(connection: Connection, action_id: int, *, failed: bool) -> None:
    """Record that an action is over."""
    message = "Error" if failed else None
    connection.execute(_CLOSE, {"b_id": action_id, "b_now": clock.utcnow(), "b_message": message})


def every(database: Database, server: str) -> list[Any]:
    """A server's actions, newest first."""
    with database.read() as connection:
        return list(connection.execute(_LIST, {"b_uuid": server}))


def one(database: Database, server: str, request_id: str) -> tuple[Any, list[Any]] | None:
    """(action, its events, newest first) of a request, or None."""
    with database.read() as connection:
        row = connection.execute(_SHOW, {"b_uuid": server, "b_request": request_id}).first()
        if row is None:
            return None
        return row, list(connection.execute(_EVENTS, {"b_id": row.id}))


def between(rows: list[Any], since: datetime | None, before: datetime | None) -> list[Any]:
    """Those that were touched in a span of time."""
    def touched(row: Any) -> datetime:
        moment: datetime = row.updated_at or row.created_at
        return moment

    return [
        row for row in rows
        if (since is None or touched(row) >= since) and (before is None or touched(row) <= before)
    ]  # fmt: skip
