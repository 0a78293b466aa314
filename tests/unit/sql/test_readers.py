"""Services that read go on reading while others start, and while the tables are brought up to date."""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from kilonova.db.prepare import prepare_api, prepare_cell
from kilonova.embedded.store import open_tables
from kilonova.placement.store.prepare import prepare as prepare_placement
from kilonova.sql import migrate
from kilonova.sql.engine import Database
from kilonova.sql.types import new_metadata
from tests.databases import CLOUD, KINDS
from tests.deploy.servers import databases

STARTS: dict[str, Callable[[Database], None]] = {
    "api": prepare_api, "cell": prepare_cell, "placement": prepare_placement,
    **{name: partial(open_tables, metadata=CLOUD[name]) for name in ("identity", "images", "network", "volumes")},
}  # fmt: skip
"""How a process finds each of its databases at its start."""
READERS = 3

FIRST = """
import sqlalchemy as sa
from alembic import op
revision, down_revision = "0001", None
def upgrade():
    op.create_table("things", sa.Column("id", sa.Integer, primary_key=True), sa.Column("name", sa.String(9)))
"""
SECOND = """
import sqlalchemy as sa
from alembic import op
revision, down_revision = "0002", "0001"
def upgrade():
    with op.batch_alter_table("things") as batch:
        batch.add_column(sa.Column("colour", sa.String(9), nullable=False, server_default="red"))
        batch.create_index("things_colour", ["colour"])
    op.create_table("others", sa.Column("id", sa.Integer, primary_key=True))
    op.execute("UPDATE things SET name = 'new'")
"""
ENV = "from kilonova.sql import revisions\nimport sqlalchemy as sa\nrevisions.run(sa.MetaData())\n"


@pytest.fixture(params=KINDS)
def new(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[str], Database]]:
    """Makes empty databases, which are gone after the test."""
    with ExitStack() as stack:

        def make(name: str) -> Database:
            if request.param == "sqlite":
                url = f"sqlite:///{tmp_path}/{name}.db"
            else:
                url = stack.enter_context(databases(request.param, (name,)))(name)
            made = Database(url, pool_size=1)
            stack.callback(made.dispose)
            return made

        yield make


@contextmanager
def read_by_others(database: Database, statements: list[Any]) -> Iterator[Callable[[], None]]:
    """Connections of other processes that do nothing but read; ends with an AssertionError when one of them failed.

    Yields what waits until all of them have read everything once more.
    """
    wrong: list[Exception] = []
    rounds, enough = [0] * READERS, threading.Event()

    def read(number: int) -> None:
        own = Database(database.url.render_as_string(hide_password=False), pool_size=1)
        try:
            while not enough.is_set():
                for statement in statements:
                    with own.read() as connection:
                        connection.execute(statement).all()
                rounds[number] += 1
        except Exception as error:
            wrong.append(error)
        finally:
            own.dispose()

    threads = [threading.Thread(target=read, args=(number,)) for number in range(READERS)]

    def once_more() -> None:
        before = list(rounds)
        while not wrong and any(now < then + 2 for now, then in zip(rounds, before, strict=True)):
            enough.wait(0.005)

    for thread in threads:
        thread.start()
    try:
        yield once_more
    finally:
        enough.set()
        for thread in threads:
            thread.join()
    assert wrong == []


def test_a_second_start_disturbs_nobody_who_reads(new: Callable[[str], Database]) -> None:
    for name, start in STARTS.items():
        database = new(name)
        start(database)
        with read_by_others(database, [sa.select(table) for table in CLOUD[name].sorted_tables]) as once_more:
            once_more()
            for _ in range(3):
                start(database)
            once_more()


@pytest.fixture
def scripts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The package `read_revisions`, with one revision."""
    folder = tmp_path / "read_revisions"
    (folder / "versions").mkdir(parents=True)
    (folder / "__init__.py").touch()
    (folder / "env.py").write_text(ENV)
    (folder / "versions/0001_initial.py").write_text(FIRST)
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    yield folder
    sys.modules.pop("read_revisions", None)


def test_a_revision_disturbs_nobody_who_reads(new: Callable[[str], Database], scripts: Path) -> None:
    database, things = new("things"), sa.table("things", sa.column("id"), sa.column("name"))
    migrate.upgrade(database, "read_revisions")
    with database.write() as connection:
        connection.execute(things.insert(), [{"id": number, "name": "old"} for number in range(1, 201)])
    (scripts / "versions/0002_colour.py").write_text(SECOND)
    with read_by_others(database, [sa.select(things), sa.select(sa.func.count()).select_from(things)]) as once_more:
        once_more()
        migrate.prepare(database, new_metadata(), "read_revisions")
        once_more()
    assert migrate.stamp(database) == "0002"
    with database.read() as connection:
        assert set(connection.execute(sa.text("SELECT name, colour FROM things"))) == {("new", "red")}
