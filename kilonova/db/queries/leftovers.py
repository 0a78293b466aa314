"""What reconcilers look for: servers, workflows and requests that nobody attends to, and who serves which hosts.

Reads only. Whether something is a leftover is decided above.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from kilonova.core import json
from kilonova.db import api_schema, cell_schema
from kilonova.db.queries.journal import HELD, LIVE

_CHUNK = 500
_I, _W = cell_schema.instances.c, cell_schema.workflows.c
_ATTENDED = sa.exists().where(_W.subject == _I.uuid, _W.state.in_((*LIVE, HELD)))
_STANDING = sa.select(
    _I.uuid, _I.host, _I.deleted, _I.vm_state, _ATTENDED.label("attended")
).where(_I.uuid.in_(sa.bindparam("b_uuids", expanding=True)))
_UNATTENDED = (
    sa.select(_I.uuid)
    .where(
        _I.deleted == sa.false(), sa.func.coalesce(_I.updated_at, _I.created_at) < sa.bindparam("b_before"),
        sa.or_(_I.task_state == "deleting", _I.vm_state == "building"), sa.not_(_ATTENDED),
    )
    .limit(_CHUNK)
)  # fmt: skip
_HELD = (
    sa.select(_W.id, _W.subject).where(_W.state == HELD, _W.created_at < sa.bindparam("b_before")).limit(_CHUNK)
)
_M = cell_schema.migrations.c
_MOVES = sa.select(_M.uuid).where(_M.uuid.in_(sa.bindparam("b_uuids", expanding=True)))
OVER = ("confirmed", "reverted", "error", "failed", "completed", "cancelled")
_MOVING = sa.select(_M.instance_uuid).where(
    _M.instance_uuid.in_(sa.bindparam("b_uuids", expanding=True)), _M.status.not_in(OVER)
)
_NODES = (
    sa.select(cell_schema.compute_nodes.c.id, cell_schema.compute_nodes.c.uuid)
    .where(cell_schema.compute_nodes.c.id > sa.bindparam("b_after"))
    .order_by(cell_schema.compute_nodes.c.id)
    .limit(_CHUNK)
)
_S = cell_schema.services.c
_AGENTS = sa.select(cell_schema.agents.c.id, cell_schema.agents.c.epoch, cell_schema.agents.c.last_seen_up)
_HOSTS = sa.select(_S.host).where(_S.agent == sa.bindparam("b_agent"), _S.deleted == sa.false()).order_by(_S.host)
_R, _A = api_schema.build_requests.c, api_schema.workflows.c
_OLD_REQUESTS = sa.select(_R.instance_uuid).where(_R.created_at < sa.bindparam("b_before")).limit(_CHUNK)
_PENDING = sa.select(_R.instance_uuid).where(_R.instance_uuid.in_(sa.bindparam("b_uuids", expanding=True)))
_BOOTS = sa.select(_A.params).where(_A.name == "boot", _A.state.in_((*LIVE, HELD)))


class Standing(NamedTuple):
    """How a server stands in its cell. attended: a workflow of it is not over."""

    uuid: str
    host: str | None
    deleted: bool
    vm_state: str
    attended: bool


class Agent(NamedTuple):
    """An agent process of a cell."""

    id: str
    epoch: int
    last_seen_up: datetime


def standing(connection: Connection, uuids: Sequence[str]) -> dict[str, Standing]:
    """Those of these servers that the cell has ever had and not forgotten, by uuid."""
    return {row.uuid: Standing(*row) for chunk in _chunks(uuids)
            for row in connection.execute(_STANDING, {"b_uuids": chunk})}  # fmt: skip


def unattended(connection: Connection, before: datetime) -> list[str]:
    """Servers being built or deleted that no workflow attends to and nobody has changed since then."""
    return list(connection.execute(_UNATTENDED, {"b_before": before}).scalars())


def held(connection: Connection, before: datetime) -> list[tuple[str, str]]:
    """(workflow, server) of workflows held since before then."""
    return [(row.id, row.subject) for row in connection.execute(_HELD, {"b_before": before})]


def moves(connection: Connection, uuids: Sequence[str]) -> set[str]:
    """Those of the uuids that are migrations'."""
    return {uuid for chunk in _chunks(uuids) for uuid in connection.execute(_MOVES, {"b_uuids": chunk}).scalars()}


def moving(connection: Connection, uuids: Sequence[str]) -> set[str]:
    """Those of the servers that have a migration which is not over."""
    return {uuid for chunk in _chunks(uuids) for uuid in connection.execute(_MOVING, {"b_uuids": chunk}).scalars()}


def nodes(connection: Connection, after: int) -> list[tuple[int, str]]:
    """(id, provider uuid) of the next compute nodes behind an id, some hundreds at a time."""
    return [(row.id, row.uuid) for row in connection.execute(_NODES, {"b_after": after})]


def agents(connection: Connection) -> list[Agent]:
    """The agents of a cell."""
    return [Agent(*row) for row in connection.execute(_AGENTS)]


def hosts_of(connection: Connection, agent: str) -> list[str]:
    """The hosts that an agent serves."""
    return list(connection.execute(_HOSTS, {"b_agent": agent}).scalars())


def old_requests(connection: Connection, before: datetime) -> list[str]:
    """API database: servers that have waited for a cell since before then."""
    return list(connection.execute(_OLD_REQUESTS, {"b_before": before}).scalars())


def pending(connection: Connection, uuids: Sequence[str]) -> set[str]:
    """API database: those of the servers that wait for a cell."""
    return {uuid for chunk in _chunks(uuids) for uuid in connection.execute(_PENDING, {"b_uuids": chunk}).scalars()}


def booting(connection: Connection) -> set[str]:
    """API database: the servers of every `boot` that is not over."""
    return {uuid for params in connection.execute(_BOOTS).scalars() for uuid in json.loads(params)["servers"]}


def _chunks(uuids: Sequence[str]) -> Iterator[list[str]]:
    for start in range(0, len(uuids), _CHUNK):
        yield list(uuids[start : start + _CHUNK])
