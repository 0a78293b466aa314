"""Processes go by the database's clock, whatever their hosts' clocks say, and say so when those are wrong."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa

from kilonova.core import clock
from kilonova.core.skew import Skew
from kilonova.sql.engine import Database
from kilonova.sql.shared_clock import SharedClock

REAL = clock.SystemClock()


class Wrong(clock.SystemClock):
    """A host's clock that is off by some time."""

    def __init__(self, seconds: float) -> None:
        self.off = timedelta(seconds=seconds)

    def utcnow(self) -> datetime:
        return super().utcnow() + self.off


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    made = Database(f"sqlite:///{tmp_path}/time.db")
    yield made
    made.dispose()


@contextmanager
def on_a_host(wrong: Wrong, database: Database) -> Iterator[SharedClock]:
    before = clock.install(wrong)
    shared = SharedClock(database)
    try:
        shared.start()
        yield shared
    finally:
        shared.stop()
        assert clock.install(before) is wrong


def error() -> float:
    """Seconds between the process's time and the real one."""
    return abs((clock.utcnow() - REAL.utcnow()).total_seconds())


@pytest.mark.parametrize("seconds", [-3600, 3600])
def test_a_wrong_clock_is_said_once_and_does_not_count(
    database: Database, caplog: pytest.LogCaptureFixture, seconds: int
) -> None:
    with on_a_host(Wrong(seconds), database) as shared:
        shared.look()
        assert error() < 1
    lines = [record.getMessage() for record in caplog.records]
    way = "ahead of" if seconds > 0 else "behind"
    assert [line for line in lines if f"The clock of this host is 3600.0 seconds {way} the database's" in line] == lines
    assert len(lines) == 1


def test_a_right_clock_is_not_mentioned(database: Database, caplog: pytest.LogCaptureFixture) -> None:
    with on_a_host(Wrong(0), database):
        assert error() < 1
    assert not caplog.records


def test_a_clock_that_is_set_while_the_process_runs_changes_nothing(database: Database) -> None:
    wrong = Wrong(0)
    with on_a_host(wrong, database):
        wrong.off = timedelta(hours=1)
        assert error() < 1


def test_a_database_that_is_away_leaves_the_time_as_it_was(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    with on_a_host(Wrong(60), database) as shared:

        def away() -> None:
            raise sa.exc.OperationalError("SELECT", {}, Exception("gone"))

        monkeypatch.setattr(database, "read", away)
        with pytest.raises(sa.exc.OperationalError):
            shared.look()
        assert error() < 1


def test_a_clock_is_mentioned_again_when_it_changes_and_when_it_is_right(caplog: pytest.LogCaptureFixture) -> None:
    skew = Skew("this host", "the database's")
    for seconds in (0, 1.5, 5, 5.5, 9, 8, -1):
        skew.seen(timedelta(seconds=seconds))
    words = [" ".join(record.getMessage().split()[5:9]).rstrip(":") for record in caplog.records]
    assert words == ["is 5.0 seconds ahead", "is 9.0 seconds ahead", "is right again"]
    assert all(record.levelno == logging.WARNING for record in caplog.records)
