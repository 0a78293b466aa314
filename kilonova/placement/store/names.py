"""The catalogue of names: traits, resource classes, consumer types, and their ids.

The whole catalogue is small (some four hundred rows) and is held in memory as one immutable object; the change log
says when to read it again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from kilonova.core import clock
from kilonova.placement.store.schema import consumer_types, resource_classes, traits
from kilonova.placement.store.transactions import Transaction, inserted

CUSTOM = "CUSTOM_"


@dataclass(frozen=True, slots=True)
class Names:
    """Ids by name and names by id; stamps by name hold the time of the last change."""

    class_ids: dict[str, int]
    class_names: dict[int, str]
    class_stamps: dict[str, datetime]
    trait_ids: dict[str, int]
    trait_names: dict[int, str]
    trait_stamps: dict[str, datetime]
    type_ids: dict[str, int]


_CLASSES = sa.select(resource_classes.c.id, resource_classes.c.name, resource_classes.c.updated_at).order_by(
    resource_classes.c.id
)
_TRAITS = sa.select(traits.c.id, traits.c.name, traits.c.updated_at).order_by(traits.c.id)
_TYPES = sa.select(consumer_types.c.id, consumer_types.c.name)
_CREATE_TYPE = sa.insert(consumer_types)
_TYPE_BY_NAME = sa.select(consumer_types.c.id).where(consumer_types.c.name == sa.bindparam("n"))


def load(connection: Connection) -> Names:
    """The catalogue as it is now."""
    classes = connection.execute(_CLASSES).all()
    known = connection.execute(_TRAITS).all()
    return Names(
        {name: id_ for id_, name, _ in classes},
        {id_: name for id_, name, _ in classes},
        {name: at for _, name, at in classes},
        {name: id_ for id_, name, _ in known},
        {id_: name for id_, name, _ in known},
        {name: at for _, name, at in known},
        {row.name: row.id for row in connection.execute(_TYPES)},
    )


def consumer_type_id(transaction: Transaction, held: Names, name: str) -> int:
    """The id of a consumer type, created on first use. held: a catalogue, which may be old: no type ever goes."""
    found = held.type_ids.get(name)
    if found is None:
        found = transaction.connection.execute(_TYPE_BY_NAME, {"n": name}).scalar()
    if found is None:
        found = inserted(_CREATE_TYPE, transaction.connection, {"name": name})
        transaction.touch_names()
    return int(found)


def add_missing(connection: Connection, table: sa.Table, names: Iterable[str]) -> int:
    """Insert the names that the table does not have, in the given order; answers how many."""
    have = set(connection.execute(sa.select(table.c.name)).scalars())
    now = clock.utcnow()
    rows = [{"name": name, "created_at": now, "updated_at": now} for name in names if name not in have]
    if rows:
        connection.execute(sa.insert(table), rows)
    return len(rows)


def standard_classes() -> list[str]:
    """The classes of os-resource-classes, in its order (which clients may have seen as ids)."""
    import os_resource_classes

    return list(os_resource_classes.STANDARDS)


def standard_traits() -> list[str]:
    """The traits of os-traits; importing it walks a hundred modules, so it happens only here."""
    import os_traits

    return sorted(os_traits.get_traits())


def is_custom(name: str) -> bool:
    """Whether a trait or class may be created and deleted through the API."""
    return name.startswith(CUSTOM)
