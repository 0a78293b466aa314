"""Inventories of a provider: what there is, how it may be taken, how much is in use."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from kilonova.core import clock
from kilonova.placement.errors import BadRequest, ConcurrentUpdate, InventoryInUse, NoSuch
from kilonova.placement.store import providers
from kilonova.placement.store.names import Names
from kilonova.placement.store.schema import inventories, resource_classes
from kilonova.placement.store.transactions import Transaction, matched

MAX_INT = 2147483647

_MOST = 2**62
"""What a capacity ends at: more than could ever be used, and a number that every database and column holds."""


@dataclass(frozen=True, slots=True)
class Inventory:
    """One class of one provider. Units are the class's own (MEMORY_MB counts MiB)."""

    total: int
    reserved: int = 0
    min_unit: int = 1
    max_unit: int = MAX_INT
    step_size: int = 1
    allocation_ratio: float = 1.0

    @property
    def capacity(self) -> int:
        """floor((total - reserved) * ratio), the product in binary double precision (placement-facts §3)."""
        return min(math.floor((self.total - self.reserved) * self.allocation_ratio), _MOST)


@dataclass(frozen=True, slots=True)
class Stored:
    """An inventory as it stands in the store."""

    class_id: int
    class_name: str
    inventory: Inventory
    used: int
    updated_at: datetime


_FIELDS = ("total", "reserved", "min_unit", "max_unit", "step_size", "allocation_ratio")
_OF = (
    sa.select(
        inventories.c.class_id,
        *(inventories.c[name] for name in _FIELDS),
        inventories.c.used,
        inventories.c.updated_at,
        resource_classes.c.name,
    )
    .join(resource_classes, resource_classes.c.id == inventories.c.class_id)
    .where(inventories.c.provider_id == sa.bindparam("p"))
    .order_by(inventories.c.class_id)
)
_INSERT = sa.insert(inventories)
_ONE = sa.and_(inventories.c.provider_id == sa.bindparam("p"), inventories.c.class_id == sa.bindparam("c"))
_UPDATE = (
    sa.update(inventories)
    .where(_ONE)
    .values(
        {
            name: sa.bindparam(f"v_{name}")
            for name in (*_FIELDS, "capacity", "updated_at")
        }
    )
)
_DELETE_UNUSED = sa.delete(inventories).where(_ONE, inventories.c.used == 0)


def of(connection: Connection, provider_id: int) -> list[Stored]:
    """All inventories of a provider, in the order of class ids."""
    return [
        Stored(row[0], row[9], Inventory(*row[1:7]), row[7], row[8])
        for row in connection.execute(_OF, {"p": provider_id})
    ]


def replace(
    transaction: Transaction,
    uuid: str,
    generation: int | None,
    wanted: Mapping[str, Inventory],
    names: Names,
    *,
    keep: bool = False,
) -> int:
    """Make the provider have exactly these (and with `keep` what else it has); the new generation.

    InventoryInUse when a class that would go has allocations, BadRequest for an unknown class, GenerationConflict.
    """
    ids = {_class_id(names, name): inventory for name, inventory in wanted.items()}
    row = providers.advance(transaction, uuid, generation)
    have = {stored.class_id: stored for stored in of(transaction.connection, row.id)}
    gone = [] if keep else [stored for class_id, stored in have.items() if class_id not in ids]
    in_use = [stored.class_name for stored in gone if stored.used]
    if in_use:
        raise InventoryInUse(classes=", ".join(in_use), uuid=uuid)
    for stored in gone:
        transaction.connection.execute(_DELETE_UNUSED, {"p": row.id, "c": stored.class_id})
    fresh = [_row(row.id, class_id, inventory) for class_id, inventory in ids.items() if class_id not in have]
    if fresh:
        transaction.connection.execute(_INSERT, fresh)
    for class_id in have.keys() & ids.keys():
        _overwrite(transaction, row.id, class_id, ids[class_id])
    return int(row.generation) + 1


def add(transaction: Transaction, uuid: str, name: str, inventory: Inventory, names: Names) -> int:
    """One more class; the new generation. ConcurrentUpdate when the provider has it already."""
    class_id = _class_id(names, name)
    row = providers.advance(transaction, uuid, None)
    if any(stored.class_id == class_id for stored in of(transaction.connection, row.id)):
        raise ConcurrentUpdate(
            f"Update conflict: resource provider {uuid} already has an inventory of class {name}."
        )
    transaction.connection.execute(_INSERT, _row(row.id, class_id, inventory))
    return int(row.generation) + 1


def change(
    transaction: Transaction, uuid: str, generation: int, name: str, inventory: Inventory, names: Names
) -> int:
    """Overwrite one class; the new generation. BadRequest when the provider does not have it."""
    class_id = _class_id(names, name)
    row = providers.advance(transaction, uuid, generation)
    if not _overwrite(transaction, row.id, class_id, inventory):
        raise BadRequest(f"No inventory record with resource class {name} for resource provider {uuid}.")
    return int(row.generation) + 1


def remove(transaction: Transaction, uuid: str, name: str, names: Names) -> None:
    """Take one class away. NoSuch, ConcurrentUpdate when it is in use (so the reference answers)."""
    class_id = _class_id(names, name)
    row = providers.advance(transaction, uuid, None)
    if matched(_DELETE_UNUSED, transaction.connection, {"p": row.id, "c": class_id}) == 1:
        return
    if any(stored.class_id == class_id for stored in of(transaction.connection, row.id)):
        raise ConcurrentUpdate(f"Unable to delete inventory of class {name}: Inventory for '{name}' on {uuid} in use.")
    raise NoSuch(f"No inventory of class {name} found for delete of resource provider {uuid}.")


def _class_id(names: Names, name: str) -> int:
    try:
        return names.class_ids[name]
    except KeyError:
        raise BadRequest(f"Unknown resource class in inventory: No such resource class {name}.") from None


def _row(provider_id: int, class_id: int, inventory: Inventory) -> dict[str, Any]:
    now = clock.utcnow()
    keys = {"provider_id": provider_id, "class_id": class_id, "used": 0, "created_at": now, "updated_at": now}
    return keys | _values(inventory)


def _overwrite(transaction: Transaction, provider_id: int, class_id: int, inventory: Inventory) -> bool:
    values = {f"v_{name}": value for name, value in _values(inventory).items()}
    parameters = {"p": provider_id, "c": class_id, "v_updated_at": clock.utcnow()} | values
    return matched(_UPDATE, transaction.connection, parameters) == 1


def _values(inventory: Inventory) -> dict[str, Any]:
    return {name: getattr(inventory, name) for name in (*_FIELDS, "capacity")}
