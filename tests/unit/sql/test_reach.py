"""Waiting for a database: it says why, goes on when the database is there, and gives up in time."""

from __future__ import annotations

import socket
import threading
from itertools import pairwise
from pathlib import Path

import pytest

from kilonova.core import clock
from kilonova.sql import reach
from kilonova.sql.engine import Database
from kilonova.sql.reach import DatabaseUnreachable, wait


def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.parametrize("dialect", ["postgresql", "mysql"])
def test_without_patience_a_server_that_is_not_there_is_one_sentence_without_the_password(dialect: str) -> None:
    database = Database(f"{dialect}://u:secret@127.0.0.1:{closed_port()}/d")
    with pytest.raises(DatabaseUnreachable, match=r"[Cc]onnection refused") as refused:
        wait(database)
    assert "secret" not in refused.value.text
    assert "\n" not in refused.value.text


def test_it_goes_on_when_the_database_has_come(tmp_path: Path) -> None:
    folder = tmp_path / "later"
    database = Database(f"sqlite:///{folder}/x.db")
    said: list[str] = []

    def say(line: str) -> None:
        said.append(line)
        folder.mkdir()

    assert wait(database, 10, say=say)
    assert said == [f"Waiting for the database sqlite:///{folder}/x.db: unable to open database file"]


def test_it_says_so_every_few_seconds_and_gives_up_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(clock, "monotonic", lambda: now[0])
    monkeypatch.setattr(clock, "sleep", lambda seconds: now.__setitem__(0, now[0] + seconds))
    said: list[float] = []
    with pytest.raises(DatabaseUnreachable):
        wait(Database(f"sqlite:///{tmp_path}/no/x.db"), 21, say=lambda _: said.append(now[0]))
    assert now[0] == 121
    assert len(said) == 4
    assert all(later - sooner >= reach.SAY_EVERY for sooner, later in pairwise(said))


def test_who_is_told_to_stop_waits_no_longer(tmp_path: Path) -> None:
    stop = threading.Event()
    stop.set()
    assert not wait(Database(f"sqlite:///{tmp_path}/no/x.db"), 60, say=lambda _: None, stop=stop)
