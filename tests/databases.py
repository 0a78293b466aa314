"""Databases that the tests of one pytest process take in turns: made once for each kind, emptied for each test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import sqlalchemy as sa

from kilonova.sql.engine import Database
from tests.deploy.servers import SERVERS, databases

KINDS = ("sqlite", *SERVERS)


class Shared:
    """Empty databases by kind and name."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._folder, self._stack = folder, stack
        self._made: dict[tuple[str, str], Database] = {}

    def empty(self, kind: str, name: str, metadata: sa.MetaData) -> Database:
        """The database of this name with the tables of `metadata` and no row in them.

        Numbers that a database gives to rows go on where they were. Skips the test where there is no server.
        """
        database = self._made.get((kind, name))
        if database is None:
            database = self._made[kind, name] = Database(self._make(kind, name), pool_size=2)
            self._stack.callback(database.dispose)
            with database.write() as connection:
                metadata.create_all(connection)
        else:
            _empty(database, metadata)
        return database

    def _make(self, kind: str, name: str) -> str:
        if kind == "sqlite":
            return f"sqlite:///{self._folder}/{name}.db"
        return self._stack.enter_context(databases(kind, (name,)))(name)


@contextmanager
def shared(folder: Path) -> Iterator[Shared]:
    """Them, gone at the end. folder: for SQLite's."""
    with ExitStack() as stack:
        yield Shared(folder, stack)


def _empty(database: Database, metadata: sa.MetaData) -> None:
    """Only tables with rows: a statement for each of dozens of tables takes longer than most tests."""
    tables = metadata.sorted_tables
    with database.write() as connection:
        filled = connection.execute(sa.select(*(sa.exists(sa.select(1).select_from(table)) for table in tables))).one()
        for table, any_row in reversed(list(zip(tables, filled, strict=True))):
            if any_row:
                connection.execute(table.delete())
