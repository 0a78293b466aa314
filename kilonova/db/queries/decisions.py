"""Scheduling decisions that are kept: written in batches, pruned by number and age, found by what they are about."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import msgspec
import sqlalchemy as sa

from kilonova.core.decision import Decision, packed, unpacked
from kilonova.db.api_schema import scheduler_decision_servers, scheduler_decisions
from kilonova.sql.engine import Connection, Database

_D, _S = scheduler_decisions.c, scheduler_decision_servers.c
_CHUNK: Final = 500
"""Rows deleted in one transaction: others are to write meanwhile."""

_LISTED = (
    _D.id, _D.created_at, _D.request_id, _D.project_id, _D.scheduler, _D.outcome, _D.flavor, _D.server_count, _D.host,
    _D.milliseconds,
)  # fmt: skip
_INSERT = sa.insert(scheduler_decisions)
_INSERT_SERVERS = sa.insert(scheduler_decision_servers)
_NEWEST = sa.select(sa.func.max(_D.id))
_AGED = sa.select(sa.func.max(_D.id)).where(_D.created_at < sa.bindparam("b_oldest"))
_OLD = sa.select(_D.id).where(_D.id <= sa.bindparam("b_upto")).order_by(_D.id).limit(_CHUNK)
_DELETE = sa.delete(scheduler_decisions).where(_D.id.in_(sa.bindparam("b_ids", expanding=True)))
_DELETE_SERVERS = sa.delete(scheduler_decision_servers).where(
    _S.decision_id.in_(sa.bindparam("b_ids", expanding=True))
)
_BY_ID = sa.select(_D.id, _D.decision).where(_D.id == sa.bindparam("b_id"))
_LATEST = sa.select(_D.decision).order_by(_D.id.desc()).limit(sa.bindparam("b_most"))
_SERVERS_OF = sa.select(_S.decision_id).where(_S.server_uuid == sa.bindparam("b_server"))
_OF_SERVER = sa.select(_D.id).where(_D.id.in_(_SERVERS_OF)).order_by(_D.id.desc()).limit(sa.bindparam("b_most"))
_OF_REQUEST = (
    sa.select(_D.id)
    .where(_D.request_id == sa.bindparam("b_request"))
    .order_by(_D.id.desc())
    .limit(sa.bindparam("b_most"))
)


class Listed(msgspec.Struct, frozen=True):
    """A decision as lists have it."""

    id: int
    created_at: datetime
    request_id: str | None
    project_id: str
    scheduler: str
    outcome: str
    flavor: str
    server_count: int
    host: str
    milliseconds: float


@dataclass(frozen=True, slots=True)
class DecisionFilter:
    """Which decisions: those for which everything given holds. since and before: when they were made."""

    server: str | None = None
    request_id: str | None = None
    project_id: str | None = None
    outcome: str | None = None
    host: str | None = None
    since: datetime | None = None
    before: datetime | None = None


def insert(database: Database, decisions: Iterable[Decision]) -> None:
    """Keep these, in one transaction."""
    rows = [(_row(decision), decision.servers) for decision in decisions]  # packed before the transaction begins
    with database.write() as connection:
        servers = []
        for row, uuids in rows:
            (number,) = connection.execute(_INSERT, row).inserted_primary_key or (None,)
            servers += [{"decision_id": number, "server_uuid": uuid} for uuid in dict.fromkeys(uuids)]
        if servers:
            connection.execute(_INSERT_SERVERS, servers)


def _row(decision: Decision) -> dict[str, Any]:
    return {
        "created_at": decision.at, "request_id": decision.request_id and decision.request_id[:64],
        "project_id": decision.project_id, "scheduler": decision.scheduler, "outcome": decision.outcome,
        "flavor": decision.spec.flavor.name if decision.spec is not None else "",
        "server_count": decision.server_count, "host": next(iter(decision.winners.values()), ""),
        "milliseconds": sum(decision.milliseconds.values()), "decision": packed(decision),
    }  # fmt: skip


def prune(database: Database, kept: int, oldest: datetime | None) -> int:
    """Delete all but the newest `kept`, and those made before `oldest`. Answers how many went.

    Numbers may have gaps: fewer than `kept` may stay, never more.
    """
    with database.read() as connection:
        newest = connection.execute(_NEWEST).scalar() or 0
        aged = connection.execute(_AGED, {"b_oldest": oldest}).scalar() if oldest is not None else None
    upto, gone = max(newest - kept, aged or 0), 0
    if upto <= 0:
        return 0
    while chunk := _delete_some(database, upto):
        gone += chunk
    return gone


def _delete_some(database: Database, upto: int) -> int:
    with database.write() as connection:
        ids = list(connection.execute(_OLD, {"b_upto": upto}).scalars())
        if ids:
            connection.execute(_DELETE_SERVERS, {"b_ids": ids})
            connection.execute(_DELETE, {"b_ids": ids})
    return len(ids)


def every(database: Database, wanted: DecisionFilter, limit: int, below: int | None = None) -> list[Listed]:
    """The newest of those wanted; with `below`, of those with a smaller number."""
    statement = sa.select(*_LISTED).where(*_conditions(wanted)).order_by(_D.id.desc()).limit(limit)
    if below is not None:
        statement = statement.where(_D.id < below)
    with database.read() as connection:
        return [Listed(**row._mapping) for row in connection.execute(statement)]


def _conditions(wanted: DecisionFilter) -> Iterator[sa.ColumnElement[bool]]:
    if wanted.server is not None:
        yield _D.id.in_(sa.select(_S.decision_id).where(_S.server_uuid == wanted.server))
    for column, value in (
        (_D.request_id, wanted.request_id), (_D.project_id, wanted.project_id), (_D.outcome, wanted.outcome),
        (_D.host, wanted.host),
    ):  # fmt: skip
        if value is not None:
            yield column == value
    if wanted.since is not None:
        yield _D.created_at >= wanted.since
    if wanted.before is not None:
        yield _D.created_at < wanted.before


def newest(database: Database, most: int) -> list[Decision]:
    """The newest decisions whole, newest first."""
    with database.read() as connection:
        return [unpacked(data) for data in connection.execute(_LATEST, {"b_most": most}).scalars()]


def get(database: Database, number: int) -> Decision | None:
    """One decision."""
    with database.read() as connection:
        return _read(connection, number)


def numbers_of_server(database: Database, server: str, most: int) -> Sequence[int]:
    """The numbers of the newest decisions about a server, newest first."""
    with database.read() as connection:
        return list(connection.execute(_OF_SERVER, {"b_server": server, "b_most": most}).scalars())


def numbers_of_request(database: Database, request_id: str, most: int) -> Sequence[int]:
    """The numbers of the newest decisions of a request, newest first."""
    with database.read() as connection:
        return list(connection.execute(_OF_REQUEST, {"b_request": request_id, "b_most": most}).scalars())


def _read(connection: Connection, number: int) -> Decision | None:
    row = connection.execute(_BY_ID, {"b_id": number}).first()
    return None if row is None else unpacked(row.decision)
