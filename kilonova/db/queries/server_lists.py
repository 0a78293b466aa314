"""Lists of servers in one cell: filters, order, paging. Statements vary with the filters; SQLAlchemy keeps them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from kilonova.core.server import Server
from kilonova.db.cell_schema import instances, tags
from kilonova.db.queries.servers import COLUMNS, from_row
from kilonova.sql.engine import Database


@dataclass(frozen=True, slots=True)
class ServerFilter:
    """Which servers. exact: column → values, any of them. regex: column → pattern. None leaves a condition out.

    tags: all of these; tags_any: any; not_tags: not all of these; not_tags_any: none of these. deleted: only deleted
    ones (True), only others (False), both (None). ip4/ip6: patterns tried on the fixed addresses.
    """

    exact: dict[str, Sequence[Any]] = field(default_factory=dict)
    regex: dict[str, str] = field(default_factory=dict)
    changed_since: datetime | None = None
    changed_before: datetime | None = None
    deleted: bool | None = False
    soft_deleted: bool = False
    locked: bool | None = None
    tags: Sequence[str] = ()
    tags_any: Sequence[str] = ()
    not_tags: Sequence[str] = ()
    not_tags_any: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Order:
    """(column, descending) in order of weight; the uuid, ascending, decides what is left equal."""

    keys: tuple[tuple[str, bool], ...] = (("created_at", True), ("id", True))


def _tagged(name: str) -> sa.ColumnElement[bool]:
    return sa.exists().where(sa.and_(tags.c.resource_id == instances.c.uuid, tags.c.tag == name))


def _as_text(column: sa.Column[Any]) -> sa.ColumnElement[str]:
    """A column of text as it is: what MariaDB makes of a cast compares as the connection does, not as the column."""
    return column if isinstance(column.type, sa.String) else sa.cast(column, sa.String)


def _conditions(wanted: ServerFilter) -> list[Any]:
    column = instances.c
    found: list[Any] = [column.hidden == sa.false()]
    for name, values in wanted.exact.items():
        plain = [value for value in values if value is not None]
        condition = column[name].in_(plain)
        found.append(sa.or_(condition, column[name].is_(None)) if len(plain) < len(values) else condition)
    found += [_as_text(column[name]).regexp_match(pattern) for name, pattern in wanted.regex.items()]
    if wanted.deleted is not None:
        found.append(column.deleted == (sa.true() if wanted.deleted else sa.false()))
    if wanted.deleted is False and not wanted.soft_deleted:
        found.append(column.vm_state != "soft-delete")
    touched = sa.func.coalesce(column.updated_at, column.created_at)
    if wanted.changed_since is not None:
        found.append(touched >= wanted.changed_since)
    if wanted.changed_before is not None:
        found.append(touched <= wanted.changed_before)
    if wanted.locked is not None:
        found.append(column.locked_by.is_not(None) if wanted.locked else column.locked_by.is_(None))
    found += [_tagged(name) for name in wanted.tags]
    if wanted.tags_any:
        found.append(sa.or_(*[_tagged(name) for name in wanted.tags_any]))
    if wanted.not_tags:
        found.append(sa.not_(sa.and_(*[_tagged(name) for name in wanted.not_tags])))
    found += [sa.not_(_tagged(name)) for name in wanted.not_tags_any]
    return found


def _after(order: Order, marker: Server) -> sa.ColumnElement[bool]:
    """Rows that come after the marker in the order."""
    options: list[Any] = []
    equal: list[Any] = []
    for name, descending in (*order.keys, ("uuid", False)):
        column, value = instances.c[name], getattr(marker, name)
        if value is None:  # nulls come first ascending, last descending
            beyond: Any = sa.false() if descending else column.is_not(None)
            same: Any = column.is_(None)
        else:
            beyond = sa.or_(column < value, column.is_(None)) if descending else column > value
            same = column == value
        options.append(sa.and_(*equal, beyond))
        equal.append(same)
    return sa.or_(*options)


def page(
    database: Database, wanted: ServerFilter, order: Order, limit: int, marker: Server | None = None
) -> list[Server]:
    """At most `limit` servers after the marker."""
    statement = sa.select(*COLUMNS).where(*_conditions(wanted))
    if marker is not None:
        statement = statement.where(_after(order, marker))
    for name, descending in order.keys:
        column = instances.c[name]
        nulls = column.is_(None)
        statement = statement.order_by(nulls if descending else sa.desc(nulls)) if column.nullable else statement
        statement = statement.order_by(column.desc() if descending else column.asc())
    statement = statement.order_by(instances.c.uuid).limit(limit)
    with database.read() as connection:
        return [from_row(row) for row in connection.execute(statement)]
