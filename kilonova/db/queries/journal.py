"""SQL of the workflow journal: the same statements for the API database and every cell database.

Statements are built once per dialect. Every write of a running workflow is fenced: it names the owner and the epoch,
and a row count other than one raises LostWorkflow. What the log contains is the business of `workflows`, not of this
module; times of leases and deadlines are the database's.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.dialects import mysql, sqlite

from kilonova.core import clock, json
from kilonova.core.errors import KilonovaError
from kilonova.db import api_schema, cell_schema
from kilonova.sql.engine import Connection, Database

LIVE = ("running", "undoing", "parked")
"""States in which somebody has to act."""
HELD = "held"
"""Inserted ahead of its time: nobody runs it until `release`."""
ENDED = ("done", "undone", "failed")


class LostWorkflow(KilonovaError):
    """Another conductor has adopted the workflow: whoever sees this stops at once and writes nothing more."""

    code, message = "lost_workflow", "Workflow {id} is no longer ours at epoch {epoch}."


class JournalTables(NamedTuple):
    """The journal's tables in one database."""

    workflows: sa.Table
    events: sa.Table
    conductors: sa.Table


API = JournalTables(api_schema.workflows, api_schema.workflow_events, api_schema.conductors)
CELL = JournalTables(cell_schema.workflows, cell_schema.workflow_events, cell_schema.conductors)


@dataclass(frozen=True, slots=True)
class NewWorkflow:
    """A workflow to be: params and context (`Context.to_message`) are JSON-serialisable. subject: a server's uuid."""

    id: str
    name: str
    subject: str
    params: dict[str, Any]
    context: dict[str, Any]


class Row(NamedTuple):
    """One workflow as stored. wake_in: milliseconds until its deadline, negative when it has passed. eventful:
    whether events are kept for its subject."""

    id: str
    name: str
    subject: str
    params: str
    context: str
    state: str
    step: int
    log: str
    owner: str | None
    epoch: int
    error: str | None
    wake_in: int | None
    eventful: bool


class StoredEvent(NamedTuple):
    """One delivered event; payload is JSON text."""

    id: int
    name: str
    key: str
    payload: str


class Live(NamedTuple):
    """A workflow that is not over."""

    id: str
    name: str
    owner: str | None
    state: str


# -- used inside somebody else's transaction -------------------------------------------------------------------------


def insert(connection: Connection, tables: JournalTables, new: NewWorkflow, *, held: bool = False) -> bool:
    """Add a workflow unless its id is there; whether it was added. Runs inside the caller's write transaction.

    Tell a conductor after the commit (cast `wake_workflow`); one that is not told is found by the orphan poll within
    about two seconds. `held` keeps it from being run until `release`.
    """
    moment = clock.utcnow()
    values = {
        "id": new.id, "name": new.name, "subject": new.subject, "params": json.dump_str(new.params),
        "context": json.dump_str(new.context), "state": HELD if held else "running", "step": 0, "log": "{}",
        "owner": None, "epoch": 0, "wake_at": None, "error": None, "created_at": moment, "updated_at": moment,
    }  # fmt: skip
    return connection.execute(_sql(connection.dialect.name, tables).insert, values).rowcount == 1


def release(connection: Connection, tables: JournalTables, workflow: str) -> bool:
    """Let a held workflow run; False when it was not held (any more)."""
    done = connection.execute(_sql(connection.dialect.name, tables).release, {"b_id": workflow, "at": clock.utcnow()})
    return done.rowcount == 1


def discard(connection: Connection, tables: JournalTables, workflow: str) -> bool:
    """Remove a held workflow; False when there is none."""
    return connection.execute(_sql(connection.dialect.name, tables).discard, {"b_id": workflow}).rowcount == 1


def live_of(connection: Connection, tables: JournalTables, subject: str) -> list[Live]:
    """The workflows of a subject that are not over, held ones too, oldest first."""
    found = connection.execute(_sql(connection.dialect.name, tables).live_of, {"b_subject": subject})
    return [Live(*row) for row in found]


def add_event(
    connection: Connection, tables: JournalTables, subject: str, name: str, key: str, payload: dict[str, Any]
) -> bool:
    """Keep an event for the subject's live workflows; False, and nothing kept, when it has none."""
    values = {"b_subject": subject, "name": name, "key": key, "payload": json.dump_str(payload), "at": clock.utcnow()}
    return connection.execute(_sql(connection.dialect.name, tables).add_event, values).rowcount == 1


# -- for the engine ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Journal:
    """One database's journal as one conductor uses it."""

    database: Database
    tables: JournalTables
    me: str

    @property
    def _s(self) -> _Sql:
        return _sql(self.database.dialect, self.tables)

    def claim(self, connection: Connection, workflow: str) -> Row | None:
        """The row, locked, if we may take it: nobody's, ours from before, or a dead conductor's. Else None."""
        found = connection.execute(self._s.claim, {"b_id": workflow, "me": self.me}).first()
        return None if found is None else Row(*found)

    def take(self, connection: Connection, row: Row, *, state: str, step: int, log: str) -> int:
        """Own a claimed row at the next epoch and write its first state; answers the epoch."""
        values = {
            "b_id": row.id, "b_epoch": row.epoch, "me": self.me, "epoch": row.epoch + 1, "state": state, "step": step,
            "log": log, "at": clock.utcnow(),
        }  # fmt: skip
        if connection.execute(self._s.take, values).rowcount != 1:
            raise LostWorkflow(id=row.id, epoch=row.epoch)
        return row.epoch + 1

    def write(
        self, connection: Connection, workflow: str, epoch: int, *, state: str, step: int, log: str,
        wake_ms: int | None = None, error: str | None = None,
    ) -> None:  # fmt: skip
        """One fenced write. Raises LostWorkflow."""
        values = {
            "b_id": workflow, "me": self.me, "b_epoch": epoch, "state": state, "step": step, "log": log,
            "wake_ms": wake_ms, "error": error, "at": clock.utcnow(),
        }  # fmt: skip
        if connection.execute(self._s.write, values).rowcount != 1:
            raise LostWorkflow(id=workflow, epoch=epoch)

    def load(self, connection: Connection, workflow: str) -> Row | None:
        """The row as it is."""
        found = connection.execute(self._s.load, {"b_id": workflow}).first()
        return None if found is None else Row(*found)

    def events(self, connection: Connection, subject: str) -> list[StoredEvent]:
        """Events kept for a subject, oldest first."""
        return [StoredEvent(*row) for row in connection.execute(self._s.events, {"b_subject": subject})]

    def consume(self, connection: Connection, ids: Sequence[int]) -> None:
        """Forget events by id."""
        if ids:
            connection.execute(self._s.consume, {"ids": list(ids)})

    def forget_events(self, connection: Connection, subject: str, *, keep: Iterable[str] = ()) -> None:
        """Forget the subject's events except those of the names in `keep`."""
        kept = list(keep)
        values: dict[str, Any] = {"b_subject": subject} | ({"keep": kept} if kept else {})
        connection.execute(self._s.forget_but if kept else self._s.forget, values)

    def lease(self, connection: Connection, host: str, lease_ms: int) -> int:
        """Renew (or make) our lease. Milliseconds that were left of it; negative when it had lapsed or was missing."""
        left = connection.execute(self._s.lease_left, {"me": self.me}).scalar()
        if left is None:
            connection.execute(self._s.lease_make, {"me": self.me, "host": host, "lease_ms": lease_ms})
            return -1
        connection.execute(self._s.lease_renew, {"me": self.me, "lease_ms": lease_ms})
        return int(left)

    def orphans(self, connection: Connection, limit: int) -> list[str]:
        """Ids of live workflows that nobody alive owns."""
        unowned = [row[0] for row in connection.execute(self._s.unowned, {"most": limit})]
        return unowned + [row[0] for row in connection.execute(self._s.of_dead, {"most": limit})]

    def mine(self, connection: Connection) -> list[str]:
        """Ids of the live workflows that name us as their owner."""
        return [row[0] for row in connection.execute(self._s.mine, {"me": self.me})]

    def parked_with_events(self, connection: Connection) -> list[str]:
        """Ids of our parked workflows whose subject has events: where a lost wake-up would show."""
        return [row[0] for row in connection.execute(self._s.eventful, {"me": self.me})]

    def prune(self, connection: Connection, older_s: float, limit: int = 500) -> int:
        """Delete up to `limit` workflows that ended more than so many seconds ago, how many were deleted; and events
        as old whose subject has no live workflow (they crossed the end of the last one).
        """
        cutoff = clock.after(-older_s)
        connection.execute(self._s.prune_events, {"cutoff": cutoff})
        found = connection.execute(self._s.old, {"cutoff": cutoff, "most": limit})
        ids = [row[0] for row in found]
        if ids:
            connection.execute(self._s.prune, {"ids": ids})
        return len(ids)


def transient(error: BaseException) -> bool:
    """Whether a database error says nothing about the statement: lost connection, deadlock, lock time-out."""
    return isinstance(error, sa.exc.OperationalError | sa.exc.InterfaceError | sa.exc.TimeoutError)


def tables_in(metadata: sa.MetaData) -> JournalTables:
    """The journal's tables out of a metadata that holds them."""
    return JournalTables(*(metadata.tables[name] for name in ("workflows", "workflow_events", "conductors")))


# -- statements ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Sql:
    insert: Any
    release: Any
    discard: Any
    live_of: Any
    add_event: Any
    claim: Any
    take: Any
    write: Any
    load: Any
    events: Any
    consume: Any
    forget: Any
    forget_but: Any
    lease_left: Any
    lease_make: Any
    lease_renew: Any
    unowned: Any
    of_dead: Any
    mine: Any
    eventful: Any
    old: Any
    prune: Any
    prune_events: Any


def _p(name: str, type_: Any = None) -> sa.BindParameter[Any]:
    return sa.bindparam(name, type_=type_)


@lru_cache(maxsize=64)
def _sql(dialect: str, tables: JournalTables) -> _Sql:
    now = Database.clock(dialect)
    rows = _workflow_statements(dialect, tables, now)
    return _Sql(**rows, **_event_statements(tables), **_conductor_statements(tables, now))


def _workflow_statements(dialect: str, tables: JournalTables, now: Any) -> dict[str, Any]:
    w, e, c = tables
    live = w.c.state.in_(LIVE)
    dead = sa.select(c.c.id).where(c.c.lease_until < now)
    columns = (
        w.c.id, w.c.name, w.c.subject, w.c.params, w.c.context, w.c.state, w.c.step, w.c.log, w.c.owner, w.c.epoch,
        w.c.error, (w.c.wake_at - now).label("wake_in"),
        sa.exists().where(e.c.subject == w.c.subject).label("eventful"),
    )  # fmt: skip
    held = sa.and_(w.c.id == _p("b_id"), w.c.state == HELD)
    ours = sa.and_(w.c.id == _p("b_id"), w.c.owner == _p("me"), w.c.epoch == _p("b_epoch"))
    takeable = sa.or_(w.c.owner.is_(None), w.c.owner == _p("me"), w.c.owner.in_(dead))
    claim = sa.select(*columns).where(w.c.id == _p("b_id"), live, takeable)
    # a workflow that has ended needs its params no more, and there may be a password in them
    kept = sa.case((_p("state", sa.String).in_(ENDED), sa.literal("{}", sa.Text)), else_=w.c.params)
    state = {"state": _p("state"), "step": _p("step"), "log": _p("log"), "updated_at": _p("at")}
    return {
        "insert": _insert_absent(dialect, w),
        "release": w.update().where(held).values(state="running", updated_at=_p("at")),
        "discard": w.delete().where(held),
        "live_of": sa.select(w.c.id, w.c.name, w.c.owner, w.c.state)
        .where(w.c.subject == _p("b_subject"), w.c.state.in_((*LIVE, HELD)))
        .order_by(w.c.created_at, w.c.id),
        "claim": claim.with_for_update(skip_locked=True) if dialect != "sqlite" else claim,
        "take": w.update()
        .where(w.c.id == _p("b_id"), w.c.epoch == _p("b_epoch"))
        .values(owner=_p("me"), epoch=_p("epoch"), **state),
        "write": w.update()
        .where(ours)
        .values(wake_at=now + _p("wake_ms", sa.BigInteger), error=_p("error", sa.Text), params=kept, **state),
        "load": sa.select(*columns).where(w.c.id == _p("b_id")),
        "unowned": sa.select(w.c.id).where(live, w.c.owner.is_(None)).limit(_p("most", sa.Integer)),
        "of_dead": sa.select(w.c.id).where(live, w.c.owner.in_(dead)).limit(_p("most", sa.Integer)),
        "mine": sa.select(w.c.id).where(live, w.c.owner == _p("me")),
        "old": sa.select(w.c.id)
        .where(w.c.state.in_(ENDED), w.c.updated_at < _p("cutoff"))
        .limit(_p("most", sa.Integer)),
        "prune": w.delete().where(w.c.id.in_(sa.bindparam("ids", expanding=True))),
    }


def _event_statements(tables: JournalTables) -> dict[str, Any]:
    w, e, _conductors = tables
    wanted = sa.exists().where(w.c.subject == _p("b_subject"), w.c.state.in_((*LIVE, HELD)))
    values = sa.select(
        _p("b_subject", sa.String), _p("name", sa.String), _p("key", sa.String), _p("payload", sa.Text),
        _p("at", e.c.created_at.type),
    ).where(wanted)  # fmt: skip
    of_subject = e.c.subject == _p("b_subject")
    eventful = sa.select(w.c.id).where(w.c.state == "parked", w.c.owner == _p("me"), w.c.subject.in_(
        sa.select(e.c.subject)))  # fmt: skip
    return {
        "add_event": _counted(e.insert().from_select(["subject", "name", "key", "payload", "created_at"], values)),
        "events": sa.select(e.c.id, e.c.name, e.c.key, e.c.payload).where(of_subject).order_by(e.c.id),
        "consume": e.delete().where(e.c.id.in_(sa.bindparam("ids", expanding=True))),
        "forget": e.delete().where(of_subject),
        "forget_but": e.delete().where(of_subject, e.c.name.not_in(sa.bindparam("keep", expanding=True))),
        "eventful": eventful,
        "prune_events": e.delete().where(
            e.c.created_at < _p("cutoff"),
            e.c.subject.not_in(sa.select(w.c.subject).where(w.c.state.in_((*LIVE, HELD)))),
        ),
    }


def _conductor_statements(tables: JournalTables, now: Any) -> dict[str, Any]:
    c = tables.conductors
    until = now + _p("lease_ms", sa.BigInteger)
    return {
        "lease_left": sa.select(c.c.lease_until - now).where(c.c.id == _p("me")),
        "lease_make": c.insert().values(id=_p("me"), host=_p("host"), started=now, lease_until=until),
        "lease_renew": c.update().where(c.c.id == _p("me")).values(lease_until=until),
    }


def _insert_absent(dialect: str, table: sa.Table) -> Any:
    if dialect == "sqlite":
        return _counted(sqlite.insert(table).on_conflict_do_nothing(index_elements=["id"]))
    if dialect == "postgresql":
        from sqlalchemy.dialects import postgresql  # a thirtieth of a second, which a start on SQLite does not need

        return _counted(postgresql.insert(table).on_conflict_do_nothing(index_elements=["id"]))
    return _counted(mysql.insert(table).prefix_with("IGNORE"))


def _counted(insert: Any) -> Any:
    """An INSERT whose rowcount is known everywhere: no implicit RETURNING, and the cursor's count is kept."""
    return insert.inline().execution_options(preserve_rowcount=True)
