"""A database that is not ours, looked at as it was at one moment. Nothing is written to it, and nothing is made."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.engine import URL, Connection
from sqlalchemy.pool import NullPool

from kilonova.sql.address import make_engine, parse, shown
from kilonova.sql.engine import unreachable
from kilonova.sql.reach import DatabaseRefuses, DatabaseUnreachable, reason

_DRIVER = re.compile(r"^([a-z]+)\+\w+:")


@contextmanager
def snapshot(address: str) -> Iterator[Connection]:
    """A connection in a transaction that sees everything as it is when it reads first.

    The address may name a driver that is not installed here: ours is taken. AddressUnusable, DatabaseUnreachable,
    DatabaseRefuses.
    """
    url = parse(_DRIVER.sub(r"\1:", address))
    engine = _engine(url)
    try:
        with in_words(url), engine.connect() as connection, connection.begin():
            yield connection
    finally:
        engine.dispose()


@contextmanager
def in_words(url: URL) -> Iterator[None]:
    """What goes wrong inside is DatabaseUnreachable or DatabaseRefuses, in the words of the driver."""
    try:
        yield
    except sa.exc.SQLAlchemyError as error:
        kind = DatabaseUnreachable if unreachable(error) else DatabaseRefuses
        raise kind(database=shown(url), reason=reason(error)) from error


def _engine(url: URL) -> sa.Engine:
    if url.get_backend_name() == "sqlite":
        return _sqlite(url)
    options = {"postgresql_readonly": True} if url.get_backend_name() == "postgresql" else {}
    engine = make_engine(url, poolclass=NullPool, isolation_level="REPEATABLE READ")
    return engine.execution_options(**options)


def _sqlite(url: URL) -> sa.Engine:
    """Opened for reading: a file that is not there is not made, and its way of journalling stays."""
    path = f"file:{quote(url.database or '')}?mode=ro"

    def connect() -> sqlite3.Connection:
        return sqlite3.connect(path, uri=True, isolation_level=None, timeout=30)

    engine = make_engine(url, poolclass=NullPool, creator=connect)
    event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN"))
    return engine
