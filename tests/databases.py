"""Databases that the tests of one pytest process take in turns: made once for each kind, emptied for each test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import sqlalchemy as sa

from kilonova.db import api_schema, cell_schema
from kilonova.embedded.identity import tables as identity
from kilonova.embedded.images import tables as images
from kilonova.embedded.network import tables as network
from kilonova.embedded.volumes import tables as volumes
from kilonova.placement.store import schema as placement
from kilonova.sql import migrate
from kilonova.sql.engine import Database
from tests.deploy.servers import SERVERS, databases

KINDS: Final = ("sqlite", *SERVERS)
CLOUD: Final = {
    "api": api_schema.metadata, "cell": cell_schema.metadata, "cell_cell0": cell_schema.metadata,
    "placement": placement.metadata, "identity": identity.metadata, "images": images.metadata,
    "network": network.METADATA, "volumes": volumes.METADATA,
}  # fmt: skip
"""The databases of a whole cloud: name to tables."""
_POOL: Final = "max_pool_size = 2\nmax_overflow = 6"  # a cloud has sixteen pools, and servers their usual limits


@dataclass
class Places:
    """Where the databases of a whole cloud are. config: what its kilonova.conf says of that, nothing for SQLite."""

    kind: str
    config: str
    empty: Callable[[], None]
    taken: bool = False

    @contextmanager
    def held(self) -> Iterator[None]:
        """Nobody else's meanwhile: two clouds on one set of databases would do each other's work."""
        assert not self.taken or self.kind == "sqlite", "another cloud of this process has these databases"
        self.taken = True
        try:
            yield
        finally:
            self.taken = False


class Shared:
    """Empty databases by kind and name."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._folder, self._stack = folder, stack
        self._made: dict[tuple[str, str], Database] = {}
        self._places: dict[str, Places] = {}

    def empty(
        self, kind: str, name: str, metadata: sa.MetaData, make: Callable[[Database], None] | None = None
    ) -> Database:
        """The database of this name with the tables of `metadata` and no row in them, or with those that `make` makes.

        Numbers that a database gives to rows go on where they were. Skips the test where there is no server.
        """
        database = self._made.get((kind, name))
        if database is None:
            url = f"sqlite:///{self._folder}/{name}.db" if kind == "sqlite" else self._on_server(kind, (name,))(name)
            database = self._made[kind, name] = self._opened(url)
        else:
            _empty(database, metadata)
        (make or partial(migrate.complete, metadata=metadata))(database)
        return database

    def places(self, kind: str) -> Places:
        """For one cloud at a time. They have no tables before its first start."""
        if kind not in self._places:
            self._places[kind] = Places(kind, "", lambda: None) if kind == "sqlite" else self._cloud(kind)
        return self._places[kind]

    def _cloud(self, kind: str) -> Places:
        url = self._on_server(kind, tuple(CLOUD))
        known = {name: self._opened(url(name)) for name in CLOUD}
        groups = {
            "api_database": url("api"), "database": url("cell"), "placement_database": url("placement"),
            "embedded": url("identity").replace("_identity", "_{service}"),
        }  # fmt: skip
        lines = [f"[{group}]\nconnection = {one}" for group, one in groups.items()]
        config = "\n".join(lines).replace("\n[", f"\n{_POOL}\n[") + "\n"

        def empty() -> None:
            for name, database in known.items():
                _empty(database, CLOUD[name])
                database.dispose()  # a server has few connections, and the cloud takes many

        return Places(kind, config, empty)

    def _on_server(self, kind: str, names: tuple[str, ...]) -> Callable[[str], str]:
        return self._stack.enter_context(databases(kind, names))

    def _opened(self, url: str) -> Database:
        database = Database(url, pool_size=1)
        self._stack.callback(database.dispose)
        return database


@contextmanager
def shared(folder: Path) -> Iterator[Shared]:
    """Them, gone at the end. folder: for SQLite's."""
    with ExitStack() as stack:
        yield Shared(folder, stack)


def _empty(database: Database, metadata: sa.MetaData) -> None:
    """Only tables with rows: a statement for each of dozens of tables takes longer than most tests."""
    with database.write() as connection:
        there = set(sa.inspect(connection).get_table_names())
        tables = [table for table in metadata.sorted_tables if table.name in there and table.name not in _FIXED]
        if not tables:
            return
        filled = connection.execute(sa.select(*(sa.exists(sa.select(1).select_from(table)) for table in tables))).one()
        unchecked = database.dialect in ("mysql", "mariadb")  # where rows of one table that name each other cannot go
        if unchecked:
            connection.execute(sa.text("SET foreign_key_checks = 0"))
        for table, any_row in reversed(list(zip(tables, filled, strict=True))):
            if any_row:
                connection.execute(table.delete())
        if unchecked:
            connection.execute(sa.text("SET foreign_key_checks = 1"))


_FIXED: Final = {placement.change_heads.name}  # made with the tables, and never again
