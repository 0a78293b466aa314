"""Decisions on their way to the database: the queue drops and counts, and nobody waits for it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from kilonova.core import clock, ids
from kilonova.db import api_schema
from kilonova.db.queries import decisions
from kilonova.db.queries.decisions import DecisionFilter
from kilonova.scheduler import recorder as recorders
from kilonova.scheduler.recorder import Kept, Recorder
from kilonova.scheduler.trace import Trace
from kilonova.sql.engine import Database


def trace() -> Trace:
    return Trace("req-1", (ids.new_uuid(),), None, seconds={"filters": 0.001})


def until(what: Callable[[], Any]) -> None:
    end = clock.monotonic() + 10
    while not what():
        assert clock.monotonic() < end, "it did not come to be in time"
        clock.sleep(0.01)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    made = Database(f"sqlite:///{tmp_path}/api.db")
    api_schema.metadata.create_all(made._writer)
    yield made
    made.dispose()


@contextmanager
def running(database: Database, kept: Kept = Kept()) -> Iterator[Recorder]:  # noqa: B008 (frozen)
    made = Recorder(database, kept, "me")
    made.start()
    try:
        yield made
    finally:
        made.stop()


def listed(database: Database) -> list[decisions.Listed]:
    return decisions.every(database, DecisionFilter(), 1000)


def test_what_was_handed_over_is_written_before_the_recorder_ends(database: Database) -> None:
    with running(database) as made:
        for _ in range(50):
            made.add(trace())
    assert (made.written, made.dropped, len(listed(database))) == (50, 0, 50)
    assert {row.scheduler for row in listed(database)} == {"me"}


def test_a_full_queue_drops_and_counts_and_says_so_once(database: Database, caplog: pytest.LogCaptureFixture) -> None:
    made = Recorder(database, Kept(), queued=3)  # not started: nothing leaves the queue
    with caplog.at_level(logging.WARNING):
        for _ in range(10):
            made.add(trace())
    assert made.dropped == 7
    assert len([line for line in caplog.records if "could not be kept" in line.getMessage()]) == 1


def test_a_database_that_is_away_costs_the_decisions_and_nothing_else(tmp_path: Path) -> None:
    away = Database(f"sqlite:///{tmp_path}/empty.db")  # it has no tables
    try:
        with running(away) as made:
            made.add(trace())
            until(lambda: made.dropped)
            api_schema.metadata.create_all(away._writer)
            made.add(trace())
            until(lambda: made.written)
        assert (made.written, made.dropped) == (1, 1)
    finally:
        away.dispose()


def test_decisions_are_pruned_while_others_are_written(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorders, "_PRUNE_AFTER", 5)
    with running(database, Kept(number=10, seconds=0)) as made:
        for _ in range(60):
            made.add(trace())
    assert made.written == 60
    assert len(listed(database)) <= 10 + 20  # what came after the last pruning is one batch at most


def test_a_recorder_that_has_ended_takes_nothing(database: Database) -> None:
    with running(database) as made:
        pass
    made.add(trace())
    assert (made.dropped, listed(database)) == (1, [])
