"""The revisions of each database lead to the same tables as its definitions, on every kind of database at hand."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from kilonova.core import ids
from kilonova.embedded.store import open_tables
from kilonova.placement.store.prepare import prepare as prepare_placement
from kilonova.sql import migrate
from kilonova.sql.engine import Database
from tests.databases import CLOUD, KINDS
from tests.deploy.servers import databases
from tools.migration import DATABASES

TABLES = {
    "api": "kilonova.db.api_schema",
    "cell": "kilonova.db.cell_schema",
    "placement": "kilonova.placement.store.schema",
}
EMBEDDED = ("identity", "images", "network", "volumes")

Make = Callable[[], Database]


@pytest.fixture(params=KINDS)
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Make]:
    """Makes empty databases, which are gone after the test."""
    with ExitStack() as stack:

        def make() -> Database:
            if request.param == "sqlite":
                made = Database(f"sqlite:///{tmp_path}/{ids.new_hex()}.sqlite")
            else:
                made = Database(stack.enter_context(databases(request.param, ("one",)))("one"))
            stack.callback(made.dispose)
            return made

        yield make


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


@pytest.mark.parametrize("name", EMBEDDED)
def test_tables_of_the_embedded_services_are_as_defined(name: str, empty: Make) -> None:
    database = empty()
    for _ in range(2):
        open_tables(database, CLOUD[name])
    with database._reader.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), CLOUD[name]) == []


@pytest.mark.parametrize("make", [prepare_placement, lambda database: open_tables(database, CLOUD["network"])])
def test_processes_that_start_at_once_make_a_database_and_its_rows_only_once(
    empty: Make, make: Callable[[Database], None]
) -> None:
    database, together, wrong = empty(), threading.Barrier(6), []

    def start() -> None:
        own = Database(database.url.render_as_string(hide_password=False))
        try:
            together.wait()
            make(own)
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
    make(database)


@pytest.mark.parametrize("name", DATABASES)
def test_revisions_are_one_line_whose_numbers_rise_by_one(name: str) -> None:
    known = migrate.revisions(DATABASES[name])
    assert known == [f"{number:04d}" for number in range(1, len(known) + 1)]
