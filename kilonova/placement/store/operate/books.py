"""Whether Placement's books are right in themselves, and how they are put right.

Every finding comes from one statement, which sees one state of the database; so a service that goes on meanwhile
makes none. A repair looks again under the lock that writers take, and is one transaction for each provider.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from kilonova.core import clock
from kilonova.placement.store.changes import What
from kilonova.placement.store.inventories import MAX_INT, Inventory
from kilonova.placement.store.operate.trees import roots
from kilonova.placement.store.schema import allocations, consumers, inventories, resource_classes, resource_providers
from kilonova.placement.store.transactions import Transaction, Writer, matched
from kilonova.sql.engine import Database


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is not as it should be.

    check: its kind, a word. warning: it may be so, and is only said. key: the id of the provider or consumer to put
    right, 0 when nothing can be done here.
    """

    check: str
    subject: str
    text: str
    warning: bool = False
    key: int = 0


USED, CAPACITY, NO_INVENTORY, OVER, IDLE, TREE = "used", "capacity", "no-inventory", "over-capacity", "idle", "tree"

_same = sa.and_(
    allocations.c.provider_id == inventories.c.provider_id, allocations.c.class_id == inventories.c.class_id
)
# A sum for each row by the index: joined to all sums, MariaDB would make the sums anew for each row.
_total = sa.func.coalesce(sa.select(sa.func.sum(allocations.c.used)).where(_same).scalar_subquery(), 0)
_DRIFTED = sa.select(
    inventories.c.provider_id, inventories.c.class_id, inventories.c.used, _total.label("total")
).where(inventories.c.used != _total)
_MISSING = (
    sa.select(allocations.c.provider_id, allocations.c.class_id, sa.func.sum(allocations.c.used).label("total"))
    .where(~sa.exists().where(_same).correlate(allocations))
    .group_by(allocations.c.provider_id, allocations.c.class_id)
)
_STOCK = sa.select(inventories)
_OVER = sa.select(
    inventories.c.provider_id, inventories.c.class_id, inventories.c.used, inventories.c.capacity
).where(inventories.c.used > inventories.c.capacity)
_IDLE = sa.select(consumers.c.id, consumers.c.uuid).where(
    ~sa.exists().where(allocations.c.consumer_id == consumers.c.id)
)
_PROVIDERS = sa.select(
    resource_providers.c.id, resource_providers.c.uuid, resource_providers.c.name, resource_providers.c.parent_id,
    resource_providers.c.root_id,
)  # fmt: skip
_CLASSES = sa.select(resource_classes.c.id, resource_classes.c.name)
_OF: Final[sa.BindParameter[Any]] = sa.bindparam("p")
_DRIFTED_OF = _DRIFTED.where(inventories.c.provider_id == _OF)
_STOCK_OF = _STOCK.where(inventories.c.provider_id == _OF)
_MISSING_OF = _MISSING.where(allocations.c.provider_id == _OF)
_LOCK = sa.select(resource_providers.c.id).where(resource_providers.c.id == _OF).with_for_update()
_ONE = sa.and_(inventories.c.provider_id == _OF, inventories.c.class_id == sa.bindparam("c"))
_SET_USED = (
    sa.update(inventories).where(_ONE).values(used=sa.bindparam("n"), updated_at=inventories.c.updated_at)
)  # fmt: skip
_SET_CAPACITY = (
    sa.update(inventories).where(_ONE).values(capacity=sa.bindparam("n"), updated_at=inventories.c.updated_at)
)
_STOCK_UP = sa.insert(inventories)
_BUMP = (
    sa.update(resource_providers)
    .where(resource_providers.c.id == _OF)
    .values(generation=resource_providers.c.generation + 1)
)
_SET_ROOT = (
    sa.update(resource_providers)
    .where(resource_providers.c.id == _OF)
    .values(root_id=sa.bindparam("r"), updated_at=resource_providers.c.updated_at)
)
_LOCK_CONSUMER = sa.select(consumers.c.id).where(consumers.c.id == sa.bindparam("i")).with_for_update()
_HOLDS = sa.select(allocations.c.id).where(allocations.c.consumer_id == sa.bindparam("i")).limit(1)
_FORGET = sa.delete(consumers).where(consumers.c.id == sa.bindparam("i"))


def audit(database: Database) -> Iterator[Finding]:
    """Everything that is wrong, or may be."""
    with database.read() as connection:
        of = {row.id: row for row in connection.execute(_PROVIDERS)}
        classes = {row.id: row.name for row in connection.execute(_CLASSES)}

        def subject(row: Any) -> str:
            provider = of.get(row.provider_id)
            name = f"{provider.name} ({provider.uuid})" if provider else f"provider {row.provider_id}"
            return f"{classes.get(row.class_id, row.class_id)} of {name}"

        row: Any
        for row in connection.execute(_DRIFTED):
            text = f"used is {row.used}, the allocations are {int(row.total)}"
            yield Finding(USED, subject(row), text, key=row.provider_id)
        for row in connection.execute(_MISSING):
            text = f"{int(row.total)} allocated and no inventory, so they cannot be given back"
            yield Finding(NO_INVENTORY, subject(row), text, key=row.provider_id)
        for row in connection.execute(_STOCK):
            if row.capacity != _capacity(row):
                text = f"capacity is {row.capacity}, total, reserved and ratio make {_capacity(row)}"
                yield Finding(CAPACITY, subject(row), text, key=row.provider_id)
        for row in connection.execute(_OVER):
            yield Finding(OVER, subject(row), f"used is {row.used} of {row.capacity}", warning=True)
        for row in connection.execute(_IDLE):
            yield Finding(IDLE, f"consumer {row.uuid}", "it holds nothing", key=row.id)
        yield from _trees(of)


def mend(writer: Writer, finding: Finding) -> bool:
    """Put one finding right, and what else is wrong in the same place. False when nothing can be done here."""
    if not finding.key:
        return False
    repair = {IDLE: _forget, TREE: _root}.get(finding.check, _provider)
    writer.run(lambda transaction: repair(transaction, finding.key))
    return True


def settle_used(transaction: Transaction) -> None:
    """Make every `used` the sum of the allocations, in a transaction that has everything else done."""
    rows = [
        {"p": row.provider_id, "c": row.class_id, "n": int(row.total)}
        for row in transaction.connection.execute(_DRIFTED)
    ]
    if rows:
        transaction.connection.execute(_SET_USED, rows)
    for row in rows:
        transaction.touch(row["p"], What.USAGE)


def _capacity(row: Any) -> int:
    return Inventory(row.total, row.reserved, allocation_ratio=row.allocation_ratio).capacity


def _trees(of: dict[int, Any]) -> Iterator[Finding]:
    tops = roots({row.id: row.parent_id for row in of.values()})
    for row in of.values():
        subject = f"{row.name} ({row.uuid})"
        if row.id not in tops:
            yield Finding(TREE, subject, "it is its own ancestor: give it another parent through the API")
        elif row.root_id != tops[row.id]:
            known = of.get(row.root_id)
            text = f"its root is {known.name if known else 'none'}, its topmost ancestor {of[tops[row.id]].name}"
            yield Finding(TREE, subject, text, key=row.id)


def _provider(transaction: Transaction, provider_id: int) -> None:
    """`used`, capacities and missing inventories of one provider, under the lock that claims take."""
    connection, of = transaction.connection, {"p": provider_id}
    if connection.execute(_LOCK, of).first() is None:
        return
    for row in connection.execute(_STOCK_OF, of).all():
        if row.capacity != _capacity(row):
            connection.execute(_SET_CAPACITY, {**of, "c": row.class_id, "n": _capacity(row)})
            transaction.touch(provider_id)
    missing = connection.execute(_MISSING_OF, of).all()
    if missing:
        connection.execute(_STOCK_UP, [_full(row) for row in missing])
        matched(_BUMP, connection, of)
        transaction.touch(provider_id)
    for row in connection.execute(_DRIFTED_OF, of).all():
        connection.execute(_SET_USED, {**of, "c": row.class_id, "n": int(row.total)})
        transaction.touch(provider_id)


def _full(row: Any) -> dict[str, Any]:
    """An inventory of which nothing can be had: with it allocations can be given back."""
    now, total = clock.utcnow(), min(int(row.total), MAX_INT)
    return {
        "provider_id": row.provider_id, "class_id": row.class_id, "total": total, "reserved": total, "min_unit": 1,
        "max_unit": MAX_INT, "step_size": 1, "allocation_ratio": 1.0, "capacity": 0, "used": int(row.total),
        "created_at": now, "updated_at": now,
    }  # fmt: skip


def _forget(transaction: Transaction, consumer_id: int) -> None:
    """Remove a consumer that still holds nothing."""
    of = {"i": consumer_id}
    if transaction.connection.execute(_LOCK_CONSUMER, of).first() is None:
        return
    if transaction.connection.execute(_HOLDS, of).first() is None:
        transaction.connection.execute(_FORGET, of)


def _root(transaction: Transaction, provider_id: int) -> None:
    """Lock the tree as it should be, and say its root."""
    connection = transaction.connection
    top = _top(connection, provider_id)
    if top is None:
        return
    for one in sorted({top, provider_id}):
        connection.execute(_LOCK, {"p": one})
    if _top(connection, provider_id) == top:
        connection.execute(_SET_ROOT, {"p": provider_id, "r": top})
        transaction.touch(provider_id)
        transaction.touch(top)


def _top(connection: Connection, provider_id: int) -> int | None:
    return roots({row.id: row.parent_id for row in connection.execute(_PROVIDERS)}).get(provider_id)


