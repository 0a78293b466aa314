"""The revisions of each database lead to the same tables as its definitions, on every database that is at hand.

SQLite always is; KILONOVA_TEST_POSTGRESQL and KILONOVA_TEST_MARIADB give URLs of servers on which the test may make
and drop databases.
"""

from __future__ import annotations

import importlib
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from kilonova.core import ids
from kilonova.placement.store.prepare import prepare as prepare_placement
from kilonova.sql import migrate
from kilonova.sql.engine import Database
from tools.migration import DATABASES

TABLES = {
    "api": "kilonova.db.api_schema",
    "cell": "kilonova.db.cell_schema",
    "placement": "kilonova.placement.store.schema",
}
SERVERS = {"postgresql": os.environ.get("KILONOVA_TEST_POSTGRESQL"), "mariadb": os.environ.get("KILONOVA_TEST_MARIADB")}

Make = Callable[[], Database]


@pytest.fixture(params=["sqlite", *(name for name, url in SERVERS.items() if url)])
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Make]:
    """Makes empty databases, which are gone after the test."""
    url = SERVERS.get(request.param)
    server = sa.create_engine(url, isolation_level="AUTOCOMMIT") if url else None
    made: list[Database] = []

    def make() -> Database:
        name = f"kilonova_{ids.new_hex()[:12]}"
        if server is None:
            made.append(Database(f"sqlite:///{tmp_path}/{name}.sqlite"))
        else:
            with server.connect() as connection:
                connection.execute(sa.text(f"CREATE DATABASE {name}"))
            made.append(Database(server.url.set(database=name).render_as_string(hide_password=False)))
        return made[-1]

    yield make
    for database in made:
        database.dispose()
        if server is not None:
            with server.connect() as connection:
                connection.execute(sa.text(f"DROP DATABASE {database.url.database}"))
    if server is not None:
        server.dispose()


def shape(database: Database) -> dict[str, Any]:
    """Every table with its columns, keys and indexes, as the database itself tells it."""
    inspector = sa.inspect(database._reader)
    return {
        table: {
            "columns": [
                (column["name"], str(column["type"]), column["nullable"], str(column["default"]))
                for column in inspector.get_columns(table)
            ],
            "primary": inspector.get_pk_constraint(table),
            "unique": sorted(inspector.get_unique_constraints(table), key=str),
            "foreign": sorted(inspector.get_foreign_keys(table), key=str),
            "indexes": sorted(inspector.get_indexes(table), key=str),
        }
        for table in inspector.get_table_names()
    }


@pytest.mark.parametrize("name", DATABASES)
def test_revisions_from_nothing_lead_to_the_table_definitions(name: str, empty: Make) -> None:
    metadata, scripts = importlib.import_module(TABLES[name]).metadata, DATABASES[name]
    upgraded, made = empty(), empty()
    migrate.upgrade(upgraded, scripts)
    migrate.prepare(made, metadata, scripts)
    assert migrate.stamp(upgraded) == migrate.stamp(made)
    with upgraded._reader.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []
    assert shape(upgraded) == shape(made)


def test_processes_that_start_at_once_make_a_database_and_its_rows_only_once(empty: Make) -> None:
    database, together, wrong = empty(), threading.Barrier(6), []

    def start() -> None:
        own = Database(database.url.render_as_string(hide_password=False))
        try:
            together.wait()
            prepare_placement(own)
        except Exception as error:
            wrong.append(error)
        finally:
            own.dispose()

    threads = [threading.Thread(target=start) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    prepare_placement(database)


@pytest.mark.parametrize("name", DATABASES)
def test_revisions_are_one_line_whose_numbers_rise_by_one(name: str) -> None:
    known = migrate.revisions(DATABASES[name])
    assert known == [f"{number:04d}" for number in range(1, len(known) + 1)]
