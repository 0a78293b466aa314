"""A database as two engines: reads autocommit, writes are one transaction each.

SQLite (WAL): one writer at a time by a lock of our own, because the busy handler polls and starves; the transaction
begins IMMEDIATE so that it never has to be upgraded. PostgreSQL and MariaDB: READ COMMITTED. Statements are built
once at import with bind parameters; building them per call costs as much as running them.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.engine import URL
from sqlalchemy.engine import Connection as Connection  # for the rooms that do not import sqlalchemy
from sqlalchemy.pool import QueuePool

from kilonova.core import clock, json, regex
from kilonova.sql.address import make_engine, parse

_open = threading.local()


def transaction_open() -> bool:
    """Whether this thread is inside a write transaction: no remote call may be made then."""
    return bool(getattr(_open, "depth", 0))


def unreachable(error: BaseException) -> bool:
    """Whether the database did not answer, let nobody in, or the connection broke: nothing is wrong with the statement.

    Drivers call much else operational: PyMySQL a column without a value, psycopg a deadlock, SQLite a missing table.
    """
    if not isinstance(error, sa.exc.OperationalError):
        return isinstance(error, sa.exc.InterfaceError | sa.exc.TimeoutError)
    cause: Any = error.orig
    number, state = next(iter(cause.args), None), getattr(cause, "sqlstate", None)
    if error.connection_invalidated:
        return True
    if isinstance(number, int):
        return number in _OF_CLIENT or number in _LETS_NOBODY_IN
    if state is not None:
        return state != "57014" and state[:2] in ("08", "28", "3D", "53", "57")
    return getattr(cause, "sqlite_errorcode", None) != sqlite3.SQLITE_ERROR


_OF_CLIENT = range(2000, 3000)  # MariaDB's client has these: no connection, or one that broke; above are refusals
_LETS_NOBODY_IN = frozenset((1040, 1044, 1045, 1049, 1053, 1129, 1130, 1203, 1226, 1698, 1927))
"""MariaDB: too many connections, no such user or database, blocked, shutting down, killed."""


class Database:
    """One database. `read()` and `write()` lend a connection; both are safe from any thread."""

    def __init__(self, url: str, *, pool_size: int = 16, max_overflow: int = 16, pool_timeout: float = 30.0) -> None:
        """pool_size: connections that stay open. max_overflow: further ones under load. pool_timeout: seconds to wait
        for one of them. AddressUnusable."""
        self.url: URL = parse(url)
        self.dialect: str = self.url.get_backend_name()
        self._lock = threading.Lock() if self.dialect == "sqlite" else None
        self._writer, self._reader = _engines(self.url, pool_size, max_overflow, pool_timeout)

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A connection in autocommit: each statement sees what is committed when it starts."""
        with self._reader.connect() as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """A transaction: committed at the end, rolled back on any exception. Not to be nested on one database."""
        depth = getattr(_open, "depth", 0)
        _open.depth = depth + 1
        try:
            if self._lock is None:
                with self._writer.begin() as connection:
                    yield connection
            else:
                with self._lock, self._writer.begin() as connection:
                    yield connection
        finally:
            _open.depth = depth

    def dispose(self) -> None:
        """Close every connection; the object is not to be used afterwards."""
        self._writer.dispose()
        self._reader.dispose()

    def now(self) -> sa.sql.expression.ColumnElement[Any]:
        """The database's clock as an expression: milliseconds since 1970, comparable between processes."""
        return self.clock(self.dialect)

    @staticmethod
    def clock(dialect: str) -> sa.sql.expression.ColumnElement[Any]:
        """The same expression by the dialect's name, for statements that are built once per dialect."""
        return sa.literal_column(_NOW_MS[dialect], sa.BigInteger)


_NOW_MS = {
    "sqlite": "CAST((julianday('now') - 2440587.5) * 86400000.0 AS INTEGER)",
    "postgresql": "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)",
    "mysql": "CAST(UNIX_TIMESTAMP(SYSDATE(3)) * 1000 AS SIGNED)",
    "mariadb": "CAST(UNIX_TIMESTAMP(SYSDATE(3)) * 1000 AS SIGNED)",
}


def _engines(url: URL, pool_size: int, max_overflow: int, pool_timeout: float) -> tuple[sa.Engine, sa.Engine]:
    common: dict[str, Any] = {
        "json_serializer": json.dump_str,
        "json_deserializer": json.loads,
        "pool_size": pool_size,
        "max_overflow": max_overflow,
        "pool_timeout": pool_timeout,
        "poolclass": QueuePool,
    }
    if url.get_backend_name() == "sqlite":
        common["connect_args"] = {"isolation_level": None, "check_same_thread": False, "cached_statements": 512}
        writer = make_engine(url, **(common | {"pool_size": 1, "max_overflow": 4}))
        reader = make_engine(url, isolation_level="AUTOCOMMIT", skip_autocommit_rollback=True, **common)
        for each in (writer, reader):
            event.listen(each, "connect", _sqlite_pragmas)
        event.listen(writer, "begin", _begin_immediate)
        return writer, reader
    common["pool_reset_on_return"] = None  # `write` has ended its transaction by then, and readers have none
    writer = make_engine(url, isolation_level="READ COMMITTED", **common)
    reader = make_engine(url, isolation_level="AUTOCOMMIT", skip_autocommit_rollback=True, **common)
    for each in (writer, reader):
        _try_when_rested(each)
    return writer, reader


_RESTED = 1.0
"""Seconds after which a connection is tried before it is lent. A server that starts again is away for longer, and a
trial before every use would cost as much as a statement."""


def _try_when_rested(engine: sa.Engine) -> None:
    def returned(_connection: Any, record: Any) -> None:
        record.info["returned"] = clock.monotonic()

    def lent(connection: Any, record: Any, _proxy: Any) -> None:
        since = record.info.get("returned")
        if since is None or clock.monotonic() - since < _RESTED:
            return
        dialect = engine.dialect
        try:
            dialect.do_ping(connection)
        except dialect.loaded_dbapi.Error as error:
            raise sa.exc.InvalidatePoolError from error  # the pool lends a new one

    event.listen(engine, "checkin", returned)
    event.listen(engine, "checkout", lent)


def _begin_immediate(connection: Connection) -> None:
    """By the driver itself: as a statement of SQLAlchemy it would cost as much as the rest of the transaction."""
    connection.connection.driver_connection.execute("BEGIN IMMEDIATE")  # type: ignore[union-attr]


def _sqlite_pragmas(connection: Any, _record: object) -> None:
    cursor = connection.cursor()
    for pragma in ("journal_mode=WAL", "synchronous=NORMAL", "busy_timeout=30000", "foreign_keys=ON"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()
    connection.create_function("regexp", 2, regex.holds, deterministic=True)
