"""A database is made from its table definitions, or brought up to date by its revisions (alembic).

A new database gets all tables at once and the number of the newest revision; an existing one runs the revisions that
it lacks. alembic is imported only for that. Several processes may prepare one database at the same time.

Revisions are one line: `versions/0001_initial.py`, `versions/0002_….py`; the number is the revision's id.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.engine import Connection
from sqlalchemy.pool import NullPool

from kilonova.core.errors import Conflict, Unavailable
from kilonova.sql import text
from kilonova.sql.engine import Database

VERSION_TABLE = "alembic_version"
MAKING = "making"  # the stamp of a database whose tables are being made: where DDL commits by itself, a crash shows
_LOCK_SECONDS = 60
_POSTGRESQL_LOCK = sa.text("SELECT pg_advisory_lock(hashtext('kilonova.tables'))")
_POSTGRESQL_UNLOCK = sa.text("SELECT pg_advisory_unlock(hashtext('kilonova.tables'))")
_MARIADB_LOCK = sa.text(f"SELECT GET_LOCK(:name, {_LOCK_SECONDS})")
_MARIADB_UNLOCK = sa.text("SELECT RELEASE_LOCK(:name)")

_version = sa.Table(
    VERSION_TABLE,
    sa.MetaData(),
    sa.Column("version_num", sa.String(32), nullable=False),
    sa.PrimaryKeyConstraint("version_num", name=f"{VERSION_TABLE}_pkc"),  # as alembic names it
)
_read_stamp = sa.select(_version.c.version_num)


class DatabaseNewer(Conflict):
    code = "database_newer"
    message = (
        "The database {database} is at revision {revision}, which this version of Kilonova does not know:"
        " a newer version wrote it, so use that one."
    )


class DatabaseOlder(Unavailable):
    code = "database_older"
    message = "The database {database} is at revision {revision} and not at {newest} yet: run `kilonova db sync`."


class DatabaseEmpty(Unavailable):
    code, message = "database_empty", "The database {database} has no tables yet: run `kilonova db sync`."


class DatabaseForeign(Conflict):
    code = "database_foreign"
    message = "The database {database} has a table {table} that Kilonova did not make: give it a database of its own."


class DatabaseBusy(Conflict):
    code = "database_busy"
    message = "Another process has been changing the tables of {database} for more than {seconds} seconds."


def prepare(
    database: Database,
    metadata: sa.MetaData,
    scripts: str,
    *,
    seed: Callable[[Connection], None] | None = None,
) -> None:
    """Make the tables of `metadata`, or bring them up to date by the revisions of the package `scripts`.

    `seed` adds the rows without which new tables are of no use, in the transaction that makes them. Raises
    DatabaseNewer, DatabaseForeign, DatabaseBusy; the database is then as it was.
    """
    known = revisions(scripts)
    if stamp(database) == known[-1]:
        return
    engine = _engine(database)
    try:
        with engine.connect() as connection, _alone(connection), connection.begin():
            current = _stamp(connection)
            if current in (None, MAKING):
                _create(connection, metadata, known[-1], seed)
            elif current not in known:
                raise DatabaseNewer(database=_shown(connection), revision=current)
            elif current != known[-1]:
                _upgrade(connection, scripts)
    finally:
        engine.dispose()


def complete(database: Database, metadata: sa.MetaData) -> None:
    """Make the tables of `metadata` that are missing, where there are no revisions. DatabaseBusy."""
    with database.read() as connection:
        if metadata.tables.keys() <= set(sa.inspect(connection).get_table_names()):
            return
    engine = _engine(database)
    try:
        with engine.connect() as connection, _alone(connection), connection.begin():
            if not sa.inspect(connection).get_table_names():
                text.exactly(connection)
            metadata.create_all(connection)
    finally:
        engine.dispose()


def require(database: Database, scripts: str) -> None:
    """Nothing for a database that is at the newest revision; DatabaseEmpty, DatabaseOlder or DatabaseNewer else."""
    known, current = revisions(scripts), stamp(database)
    shown = database.url.render_as_string(hide_password=True)
    if current in (None, MAKING):
        raise DatabaseEmpty(database=shown)
    if current not in known:
        raise DatabaseNewer(database=shown, revision=current)
    if current != known[-1]:
        raise DatabaseOlder(database=shown, revision=current, newest=known[-1])


def stamp(database: Database) -> str | None:
    """The revision that a database is at; None for one without tables of ours."""
    with database.read() as connection:
        return _stamp(connection)


def revisions(scripts: str) -> list[str]:
    """The ids of the revisions of a package, oldest first."""
    return sorted(path.name.split("_")[0] for path in (_folder(scripts) / "versions").glob("[0-9]*_*.py"))


def upgrade(database: Database, scripts: str) -> None:
    """Run every revision that the database lacks, also from nothing at all."""
    engine = _engine(database)
    try:
        with engine.connect() as connection, _alone(connection), connection.begin():
            if _stamp(connection) is None:
                text.exactly(connection)
            _upgrade(connection, scripts)
    finally:
        engine.dispose()


def _create(
    connection: Connection, metadata: sa.MetaData, head: str, seed: Callable[[Connection], None] | None
) -> None:
    if _stamp(connection) is None:
        present = set(sa.inspect(connection).get_table_names())
        for table in metadata.sorted_tables:
            if table.name in present:
                raise DatabaseForeign(database=_shown(connection), table=table.name)
        text.exactly(connection)
        _version.create(connection, checkfirst=True)
        connection.execute(sa.insert(_version), {"version_num": MAKING})
    metadata.create_all(connection)
    if seed is not None:
        seed(connection)
    connection.execute(sa.update(_version), {"version_num": head})


def _upgrade(connection: Connection, scripts: str) -> None:
    from alembic import command
    from alembic.config import Config

    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(_folder(scripts)).replace("%", "%%"))
    command.upgrade(config, "head")
    if connection.dialect.name == "sqlite":
        broken = connection.exec_driver_sql("PRAGMA foreign_key_check").all()
        if broken:
            raise RuntimeError(f"A revision of {scripts} left rows that refer to nothing: {broken[:3]}")


def _engine(database: Database) -> sa.Engine:
    """One connection for changing tables.

    On SQLite it does not enforce foreign keys: a table that is made anew under its old name is dropped in between,
    which would delete every row that refers to it. The transaction holds the file's write lock from the start.
    """
    if database.dialect != "sqlite":
        return sa.create_engine(database.url, poolclass=NullPool)
    settings = {"isolation_level": None, "timeout": _LOCK_SECONDS}
    engine = sa.create_engine(database.url, poolclass=NullPool, connect_args=settings)
    event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN IMMEDIATE"))
    return engine


@contextmanager
def _alone(connection: Connection) -> Iterator[None]:
    """No other process prepares this database until everything is committed. On SQLite the transaction sees to it."""
    dialect = connection.dialect.name
    if dialect == "postgresql":
        taken, freed, name = _POSTGRESQL_LOCK, _POSTGRESQL_UNLOCK, {}
    elif dialect in ("mysql", "mariadb"):
        name = {"name": f"kilonova.tables.{connection.engine.url.database}"[:64]}
        taken, freed = _MARIADB_LOCK, _MARIADB_UNLOCK
    else:
        yield
        return
    if connection.execute(taken, name).scalar() in (0, None):
        raise DatabaseBusy(database=_shown(connection), seconds=_LOCK_SECONDS)
    connection.commit()
    try:
        yield
    finally:
        connection.execute(freed, name)
        connection.commit()


def _stamp(connection: Connection) -> str | None:
    if not sa.inspect(connection).has_table(VERSION_TABLE):
        return None
    revision: str | None = connection.execute(_read_stamp).scalar()
    return revision


def _shown(connection: Connection) -> str:
    """The database's address without its password."""
    return connection.engine.url.render_as_string(hide_password=True)


def _folder(scripts: str) -> Path:
    """The folder of a package, without importing it."""
    spec = importlib.util.find_spec(scripts)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"There is no package {scripts}", name=scripts)
    return Path(spec.origin).parent
