"""The journal's statements: fenced writes, claims, leases, events; and that they are SQL on every database."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import pytest
from sqlalchemy.dialects import mysql, postgresql, sqlite

from kilonova.db.queries import journal as sql
from kilonova.sql.engine import Connection, Database

NEW = sql.NewWorkflow("w1", "build", "s1", {"a": 1}, {"user_id": "u"})


@pytest.fixture
def connection(cell: Database) -> Iterator[Connection]:
    with cell.write() as opened:
        yield opened


@pytest.fixture
def mine(cell: Database) -> sql.Journal:
    return sql.Journal(cell, sql.CELL, "me")


@pytest.fixture
def other(cell: Database) -> sql.Journal:
    return sql.Journal(cell, sql.CELL, "other")


def _taken(journal: sql.Journal, connection: Connection) -> int:
    sql.insert(connection, sql.CELL, NEW)
    row = journal.claim(connection, "w1")
    assert row is not None
    return journal.take(connection, row, state="running", step=0, log="{}")


@pytest.mark.parametrize("tables", [sql.API, sql.CELL])
@pytest.mark.parametrize(
    ("name", "dialect"),
    [("sqlite", sqlite.dialect()), ("postgresql", postgresql.dialect()), ("mysql", mysql.dialect())],
)
def test_every_statement_compiles_on_every_database(name: str, dialect: object, tables: sql.JournalTables) -> None:
    statements = sql._sql(name, tables)
    for field in dataclasses.fields(statements):
        assert str(getattr(statements, field.name).compile(dialect=dialect))
    claim = str(statements.claim.compile(dialect=dialect))
    assert ("SKIP LOCKED" in claim) == (name != "sqlite")


def test_a_write_of_an_older_epoch_or_of_another_owner_is_refused(
    connection: Connection, mine: sql.Journal, other: sql.Journal
) -> None:
    epoch = _taken(mine, connection)
    mine.write(connection, "w1", epoch, state="running", step=1, log="{}")
    for journal, old in ((mine, epoch - 1), (mine, epoch + 1), (other, epoch)):
        with pytest.raises(sql.LostWorkflow):
            journal.write(connection, "w1", old, state="running", step=9, log="{}")
    row = mine.load(connection, "w1")
    assert row is not None
    assert (row.step, row.owner, row.epoch) == (1, "me", 1)


def test_only_one_of_two_claims_of_a_row_takes_it(
    connection: Connection, mine: sql.Journal, other: sql.Journal
) -> None:
    sql.insert(connection, sql.CELL, NEW)
    first, second = mine.claim(connection, "w1"), other.claim(connection, "w1")
    assert first is not None
    assert second is not None
    mine.take(connection, first, state="running", step=0, log="{}")
    with pytest.raises(sql.LostWorkflow):
        other.take(connection, second, state="running", step=0, log="{}")


def test_a_row_can_be_claimed_by_its_owner_and_by_others_only_after_the_lease(
    connection: Connection, mine: sql.Journal, other: sql.Journal
) -> None:
    assert mine.lease(connection, "h", 10_000) < 0
    _taken(mine, connection)
    assert mine.claim(connection, "w1") is not None
    assert other.claim(connection, "w1") is None
    assert other.orphans(connection, 10) == []
    assert mine.mine(connection) == ["w1"]
    assert 0 < mine.lease(connection, "h", -1) <= 10_000
    assert other.orphans(connection, 10) == ["w1"]
    assert other.claim(connection, "w1") is not None


def test_what_is_over_or_held_is_nobodys_to_claim(connection: Connection, mine: sql.Journal) -> None:
    sql.insert(connection, sql.CELL, NEW, held=True)
    assert (mine.claim(connection, "w1"), mine.orphans(connection, 9)) == (None, [])
    assert [live.state for live in sql.live_of(connection, sql.CELL, "s1")] == ["held"]
    assert sql.release(connection, sql.CELL, "w1")
    row = mine.claim(connection, "w1")
    assert row is not None
    epoch = mine.take(connection, row, state="running", step=0, log="{}")
    mine.write(connection, "w1", epoch, state="done", step=0, log="{}")
    assert (mine.claim(connection, "w1"), mine.orphans(connection, 9)) == (None, [])
    assert sql.live_of(connection, sql.CELL, "s1") == []


def test_a_deadline_is_told_as_time_left_by_the_databases_clock(connection: Connection, mine: sql.Journal) -> None:
    epoch = _taken(mine, connection)
    for wake_ms, low, high in ((5000, 3000, 5000), (-5000, -7000, -5000)):
        mine.write(connection, "w1", epoch, state="parked", step=0, log="{}", wake_ms=wake_ms)
        row = mine.load(connection, "w1")
        assert row is not None
        assert row.wake_in is not None
        assert low <= row.wake_in <= high


def test_events_are_kept_in_order_for_live_subjects_only(connection: Connection, mine: sql.Journal) -> None:
    assert not sql.add_event(connection, sql.CELL, "s1", "e", "k", {})
    _taken(mine, connection)
    for number in range(3):
        assert sql.add_event(connection, sql.CELL, "s1", "e", str(number), {"n": number})
    assert [event.key for event in mine.events(connection, "s1")] == ["0", "1", "2"]
    mine.consume(connection, [mine.events(connection, "s1")[1].id])
    mine.consume(connection, [])
    assert [event.key for event in mine.events(connection, "s1")] == ["0", "2"]
    mine.forget_events(connection, "s1", keep=("e",))
    assert len(mine.events(connection, "s1")) == 2
    mine.forget_events(connection, "s1")
    assert mine.events(connection, "s1") == []


def test_pruning_takes_old_ends_and_events_of_nobody(connection: Connection, mine: sql.Journal) -> None:
    epoch = _taken(mine, connection)
    sql.add_event(connection, sql.CELL, "s1", "e", "k", {})
    assert mine.prune(connection, -60) == 0
    assert len(mine.events(connection, "s1")) == 1
    mine.write(connection, "w1", epoch, state="done", step=0, log="{}")
    assert mine.prune(connection, 60) == 0
    assert mine.prune(connection, -60) == 1
    assert (mine.load(connection, "w1"), mine.events(connection, "s1")) == (None, [])


def test_inserting_is_part_of_the_callers_transaction(cell: Database, mine: sql.Journal) -> None:
    def insert_and_fail() -> None:
        with cell.write() as connection:
            assert sql.insert(connection, sql.CELL, NEW)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        insert_and_fail()
    with cell.read() as connection:
        assert mine.load(connection, "w1") is None


def test_a_workflow_that_has_ended_keeps_no_params(connection: Connection, mine: sql.Journal) -> None:
    epoch = _taken(mine, connection)
    before = mine.load(connection, "w1")
    assert before is not None
    assert before.params != "{}"
    mine.write(connection, "w1", epoch, state="parked", step=0, log="{}")
    parked = mine.load(connection, "w1")
    assert parked is not None
    assert parked.params == before.params
    mine.write(connection, "w1", epoch, state="done", step=0, log="{}")
    ended = mine.load(connection, "w1")
    assert ended is not None
    assert ended.params == "{}"
