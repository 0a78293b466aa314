"""Rows of the embedded services: tables opened from their definitions, and the few statements that all of them use.

What is stored and what it means is each service's own; nothing here knows a table, a request or a wire format.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from kilonova.core.errors import Conflict, Invalid
from kilonova.sql import migrate
from kilonova.sql.engine import Database

Row = dict[str, Any]
T = TypeVar("T")


class Duplicate(Conflict):
    code, message = "duplicate", "A resource with these values already exists."


class MarkerNotFound(Invalid):
    code, message = "marker_not_found", "The marker {marker} could not be found."


class Unstorable(Invalid):
    code, message = "unstorable", "A value is too long, or holds a character that cannot be kept."


class BadFilter(Invalid):
    code, message = "bad_filter", "{value!r} is not a valid value of {name}."


def open_tables(database: Database, metadata: sa.MetaData) -> None:
    """Create the tables (and indexes) that do not exist yet; existing ones are left as they are."""
    migrate.complete(database, metadata)


class Rows:
    """The statements of one table, built once. Rows go in and out as plain dictionaries.

    A condition is a mapping of column to value: a list means one of, None means null, all must hold.
    Values that the database refuses raise Unstorable.
    """

    def __init__(self, table: sa.Table, key: str = "id") -> None:
        self.table = table
        self.key = key
        self._insert = sa.insert(table)

    def get(self, connection: Connection, key: str) -> Row | None:
        """The row with this key, or None."""
        found = self.find(connection, {self.key: key})
        return found[0] if found else None

    def find(self, connection: Connection, where: Mapping[str, Any] | None = None) -> list[Row]:
        """Every row for which the condition holds, in no promised order."""
        where = where or {}
        result = _run(connection, _select(self.table, _shape(where)), _params(where))
        names = tuple(result.keys())
        return [dict(zip(names, row, strict=True)) for row in result]

    def insert(self, connection: Connection, values: Mapping[str, Any]) -> None:
        """Add one row. Raises Duplicate when a key or a unique value is taken."""
        _run(connection, self._insert, values)

    def update(self, connection: Connection, where: str | Mapping[str, Any], values: Mapping[str, Any]) -> int:
        """Change the row with this key, or the rows of the condition; how many there were (compare-and-swap)."""
        where = {self.key: where} if isinstance(where, str) else where
        if not values:
            return len(self.find(connection, where))
        return _run(connection, _update(self.table, _shape(where)), {**_params(where), **values}).rowcount

    def delete(self, connection: Connection, where: str | Mapping[str, Any]) -> int:
        """Remove the row with this key, or the rows of the condition; how many there were."""
        where = {self.key: where} if isinstance(where, str) else where
        return _run(connection, _delete(self.table, _shape(where)), _params(where)).rowcount

    def conditions(self, arguments: Mapping[str, str | Sequence[str]]) -> dict[str, Any]:
        """The condition that query arguments ask for: those that name a column, read as the column's type.

        Raises BadFilter for a value that the column cannot have.
        """
        found: dict[str, Any] = {}
        for name, raw in arguments.items():
            column = self.table.columns.get(name)
            if column is not None:
                texts = [raw] if isinstance(raw, str) else list(raw)
                values = [_read(name, column.type, text) for text in texts]
                found[name] = values[0] if len(values) == 1 else values
        return found


def page(
    rows: Iterable[Row],
    *,
    sort: Sequence[tuple[str, str]] = (("created_at", "desc"), ("id", "desc")),
    limit: int | None = None,
    marker: str | None = None,
    key: str = "id",
) -> tuple[list[Row], bool]:
    """The rows in order, after the one whose key is `marker`, at most `limit`; and whether more follow.

    `sort` lists (key, "asc" or "desc"), the first counts most; nulls come first when ascending. Raises MarkerNotFound.
    """
    ordered = list(rows)
    for name, direction in reversed(sort):
        ordered.sort(key=lambda row: (row[name] is not None, row[name]), reverse=direction == "desc")
    start = 0
    if marker is not None:
        start = next((index + 1 for index, row in enumerate(ordered) if row[key] == marker), 0)
        if not start:
            raise MarkerNotFound(marker=marker)
    end = len(ordered) if limit is None else start + limit
    return ordered[start:end], end < len(ordered)


def _run(connection: Connection, statement: sa.Executable, params: Mapping[str, Any]) -> sa.CursorResult[Any]:
    """The result of a statement; what the database says of the client's values becomes a domain error."""
    try:
        return connection.execute(statement, params)
    except sa.exc.IntegrityError as error:
        raise Duplicate from error
    except sa.exc.DataError as error:
        raise Unstorable from error


def _read(name: str, kind: sa.types.TypeEngine[Any], text: str) -> Any:
    if isinstance(kind, sa.DateTime | sa.JSON):
        raise BadFilter(name=name, value=text)
    if isinstance(kind, sa.Boolean):
        if text.lower() not in ("true", "false", "1", "0"):
            raise BadFilter(name=name, value=text)
        return text.lower() in ("true", "1")
    if isinstance(kind, sa.Integer):
        if not (text.isascii() and text.removeprefix("-").isdigit() and len(text) < 12):
            raise BadFilter(name=name, value=text)
        return int(text)
    return text


_Shape = tuple[tuple[str, str], ...]


def _shape(where: Mapping[str, Any]) -> _Shape:
    return tuple((name, "null" if value is None else "in" if isinstance(value, list | tuple | set) else "is")
                 for name, value in where.items())  # fmt: skip


def _params(where: Mapping[str, Any]) -> dict[str, Any]:
    return {f"w_{name}": list(value) if isinstance(value, tuple | set) else value
            for name, value in where.items() if value is not None}  # fmt: skip


def _where(table: sa.Table, shape: _Shape) -> list[sa.ColumnElement[bool]]:
    tests: list[sa.ColumnElement[bool]] = []
    for name, kind in shape:
        column = table.c[name]
        if kind == "null":
            tests.append(column.is_(None))
        elif kind == "in":
            tests.append(column.in_(sa.bindparam(f"w_{name}", type_=column.type, expanding=True)))
        else:
            tests.append(column == sa.bindparam(f"w_{name}", type_=column.type))
    return tests


@lru_cache(512)
def _select(table: sa.Table, shape: _Shape) -> sa.Select[Any]:
    return sa.select(table).where(*_where(table, shape))


@lru_cache(512)
def _update(table: sa.Table, shape: _Shape) -> sa.Update:
    return sa.update(table).where(*_where(table, shape))


@lru_cache(512)
def _delete(table: sa.Table, shape: _Shape) -> sa.Delete:
    return sa.delete(table).where(*_where(table, shape))


def transact(database: Database, work: Callable[[Connection], T], attempts: int = 6) -> T:
    """What `work` answers, run in one write transaction; run anew when it lost a race.

    Lost races are a value or a parent taken by another request (Duplicate, a foreign key) and the deadlocks of
    PostgreSQL and MariaDB. Raises Duplicate when every attempt lost.
    """
    for left in reversed(range(attempts)):
        try:
            with database.write() as connection:
                return work(connection)
        except Duplicate:
            if not left:
                raise
        except sa.exc.IntegrityError as error:
            if not left:
                raise Duplicate from error
        except sa.exc.OperationalError as error:
            if not left or not _deadlock(error.orig):
                raise
    raise Duplicate


def _deadlock(error: BaseException | None) -> bool:
    # PostgreSQL: serialization_failure, deadlock_detected; MariaDB: ER_LOCK_WAIT_TIMEOUT, ER_LOCK_DEADLOCK.
    if error is None:
        return False
    return getattr(error, "sqlstate", None) in ("40001", "40P01") or error.args[:1] in ((1205,), (1213,))
