"""A database of OpenStack's Placement, as `import` reads it: in pages, all from one snapshot.

Its tables have no foreign keys where ours have them, so an allocation may name a provider, a class or a consumer that
is not there. What names no provider or class of the source is left out, and counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from kilonova.core.errors import Invalid
from kilonova.sql.address import shown
from kilonova.sql.foreign import in_words

PAGE: Final = 1000


class SourceUnusable(Invalid):
    code, message = "source_unusable", "The database {database} cannot be imported: {reason}."


class Stamps(NamedTuple):
    """Where the source has none, the beginning of time: two imports must write the same."""

    created_at: datetime
    updated_at: datetime


class Provider(NamedTuple):
    """One provider; ids are the source's."""

    id: int
    uuid: str
    name: str
    generation: int
    parent_id: int | None
    stamps: Stamps


class Consumer(NamedTuple):
    """One consumer that holds something."""

    uuid: str
    project_id: str
    user_id: str
    generation: int
    type_name: str | None
    stamps: Stamps


@dataclass(frozen=True)
class Source:
    """The connection of a snapshot. typed: it is new enough to have consumer types."""

    connection: Connection
    typed: bool

    def all(self, statement: sa.Executable, **parameters: Any) -> Sequence[Any]:
        """The rows of a statement. DatabaseUnreachable, DatabaseRefuses."""
        with in_words(self.connection.engine.url):
            return self.connection.execute(statement, parameters).all()


_EPOCH: Final = datetime(1970, 1, 1)
_STAMPED: Final = ("created_at", "updated_at")
_COLUMNS: Final = {
    "resource_providers": ("id", "uuid", "name", "generation", "parent_provider_id"),
    "inventories": (
        "resource_provider_id", "resource_class_id", "total", "reserved", "min_unit", "max_unit", "step_size",
        "allocation_ratio",
    ),
    "allocations": ("id", "resource_provider_id", "consumer_id", "resource_class_id", "used"),
    "consumers": ("id", "uuid", "project_id", "user_id", "generation", "consumer_type_id"),
    "consumer_types": ("id", "name"),
    "projects": ("id", "external_id"),
    "users": ("id", "external_id"),
    "resource_classes": ("id", "name"),
    "traits": ("id", "name"),
    "resource_provider_traits": ("resource_provider_id", "trait_id"),
    "resource_provider_aggregates": ("resource_provider_id", "aggregate_id"),
    "placement_aggregates": ("id", "uuid"),
}  # fmt: skip
_SINCE_TYPES: Final = {"consumer_types": ("id", "name"), "consumers": ("consumer_type_id",)}


def _table(name: str) -> sa.TableClause:
    types = {"created_at": sa.DateTime(), "updated_at": sa.DateTime()}
    return sa.table(name, *(sa.column(column, types.get(column)) for column in (*_COLUMNS[name], *_STAMPED)))


providers, inventories, allocations, consumers, consumer_types, projects, users, classes, traits = map(_table, (
    "resource_providers", "inventories", "allocations", "consumers", "consumer_types", "projects", "users",
    "resource_classes", "traits",
))  # fmt: skip
provider_traits, provider_aggregates, aggregates = map(
    _table, ("resource_provider_traits", "resource_provider_aggregates", "placement_aggregates")
)
NAMED: Final = {"class": classes, "trait": traits, "type": consumer_types}

whole = sa.and_(
    allocations.c.resource_provider_id.in_(sa.select(providers.c.id).correlate(None)),
    allocations.c.resource_class_id.in_(sa.select(classes.c.id).correlate(None)),
)
"""The allocations that can be imported."""

_PROVIDERS = sa.select(providers).order_by(providers.c.id)
_IDS: Final[sa.BindParameter[Any]] = sa.bindparam("ids", expanding=True)
_INVENTORIES = (
    sa.select(inventories, classes.c.name)
    .join(classes, classes.c.id == inventories.c.resource_class_id)
    .where(inventories.c.resource_provider_id.in_(_IDS))
)
_TRAITS = (
    sa.select(provider_traits.c.resource_provider_id, traits.c.name)
    .join(traits, traits.c.id == provider_traits.c.trait_id)
    .where(provider_traits.c.resource_provider_id.in_(_IDS))
)
_AGGREGATES = (
    sa.select(provider_aggregates.c.resource_provider_id, aggregates.c.uuid)
    .join(aggregates, aggregates.c.id == provider_aggregates.c.aggregate_id)
    .where(provider_aggregates.c.resource_provider_id.in_(_IDS), aggregates.c.uuid.is_not(None))
)
_BARE_CONSUMERS = (
    sa.select(
        consumers.c.id, consumers.c.uuid, projects.c.external_id.label("project"), users.c.external_id.label("user"),
        consumers.c.generation, consumers.c.created_at, consumers.c.updated_at,
    )
    .outerjoin(projects, projects.c.id == consumers.c.project_id)
    .outerjoin(users, users.c.id == consumers.c.user_id)
    .where(consumers.c.id > sa.bindparam("after"))
    .order_by(consumers.c.id)
    .limit(PAGE)
)  # fmt: skip
_TYPED_CONSUMERS = _BARE_CONSUMERS.add_columns(consumer_types.c.name.label("type")).outerjoin(
    consumer_types, consumer_types.c.id == consumers.c.consumer_type_id
)
UNRECORDED = sa.and_(whole, ~sa.exists().where(consumers.c.uuid == allocations.c.consumer_id))
"""Allocations of consumers without a record, which old releases left."""
_UNRECORDED_CONSUMERS = (
    sa.select(
        allocations.c.consumer_id,
        sa.func.min(allocations.c.created_at).label("created_at"),
        sa.func.max(allocations.c.updated_at).label("updated_at"),
    )
    .where(UNRECORDED, allocations.c.consumer_id > sa.bindparam("after"))
    .group_by(allocations.c.consumer_id)
    .order_by(allocations.c.consumer_id)
    .limit(PAGE)
)
_ALLOCATIONS = (
    sa.select(allocations, classes.c.name)
    .join(classes, classes.c.id == allocations.c.resource_class_id)
    .where(allocations.c.consumer_id.in_(_IDS))
    .order_by(allocations.c.id)
)
_HOLDERS = sa.select(allocations.c.consumer_id).distinct().where(allocations.c.consumer_id.in_(_IDS), whole)


def opened(connection: Connection) -> Source:
    """The source of a snapshot's connection. SourceUnusable when its tables are not Placement's."""
    look = sa.inspect(connection)
    there = {
        name: {column["name"] for column in look.get_columns(name)} if look.has_table(name) else set()
        for name in _COLUMNS
    }
    typed = bool(there["consumer_types"])
    for table, wanted in _COLUMNS.items():
        for column in (*wanted, *_STAMPED):
            old = not typed and (table == "consumer_types" or column in _SINCE_TYPES.get(table, ()))
            if column not in there[table] and not old:
                reason = f"it has no column {column} in a table {table}, so it is not OpenStack Placement's"
                raise SourceUnusable(database=shown(connection.engine.url), reason=reason)
    return Source(connection, typed)


def read_names(source: Source, kind: str) -> list[tuple[str, Stamps]]:
    """Classes, traits or consumer types, in the order in which they were made."""
    if kind == "type" and not source.typed:
        return []
    table = NAMED[kind]
    return [(row.name, _stamps(row)) for row in source.all(sa.select(table).order_by(table.c.id))]


def read_providers(source: Source) -> list[Provider]:
    """All of them: ten thousand rows are few."""
    return [
        Provider(
            row.id, row.uuid, row.name or row.uuid, row.generation or 0, row.parent_provider_id, _stamps(row)
        )
        for row in source.all(_PROVIDERS)
    ]  # fmt: skip


def read_inventories(source: Source, ids: Sequence[int]) -> list[tuple[int, str, Any, Stamps]]:
    """Provider id, class, the row with the amounts, and when."""
    found = source.all(_INVENTORIES, ids=ids)
    return [(row.resource_provider_id, row.name, row, _stamps(row)) for row in found]


def read_traits(source: Source, ids: Sequence[int]) -> set[tuple[int, str]]:
    """Provider id and trait."""
    return {(row[0], row[1]) for row in source.all(_TRAITS, ids=ids)}


def read_aggregates(source: Source, ids: Sequence[int]) -> set[tuple[int, str]]:
    """Provider id and aggregate."""
    return {(row[0], row[1]) for row in source.all(_AGGREGATES, ids=ids)}


def consumer_pages(source: Source, nobody: tuple[str, str]) -> Iterator[list[Consumer]]:
    """Every consumer that holds something. nobody: project and user of those without a record.

    Who holds something is asked page by page: within the statement, MariaDB would go through all allocations each time.
    """
    statement, after = (_TYPED_CONSUMERS if source.typed else _BARE_CONSUMERS), 0
    while page := source.all(statement, after=after):
        after, held = page[-1].id, holders(source, [row.uuid for row in page])
        yield [
            Consumer(
                row.uuid, row.project or nobody[0], row.user or nobody[1], row.generation,
                row.type if source.typed else None, _stamps(row),
            )
            for row in page
            if row.uuid in held
        ]  # fmt: skip
    last = ""
    while page := source.all(_UNRECORDED_CONSUMERS, after=last):
        last = page[-1].consumer_id
        yield [Consumer(row.consumer_id, *nobody, 1, None, _stamps(row)) for row in page]


def read_allocations(source: Source, consumers_: Sequence[str]) -> list[tuple[str, int, str, int, Stamps]]:
    """Consumer, provider id, class, amount and when, of some consumers."""
    found = source.all(_ALLOCATIONS, ids=consumers_)
    return [(row.consumer_id, row.resource_provider_id, row.name, row.used, _stamps(row)) for row in found]


def holders(source: Source, consumers_: Sequence[str]) -> set[str]:
    """Those of some consumers that hold something."""
    return {row[0] for row in source.all(_HOLDERS, ids=consumers_)}


def _stamps(row: Any) -> Stamps:
    created, updated = row.created_at, row.updated_at
    return Stamps(created or updated or _EPOCH, updated or created or _EPOCH)
