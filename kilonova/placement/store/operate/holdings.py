"""Who holds what, in the words that another service can compare: names of hosts and classes, not ids of ours."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

import sqlalchemy as sa

from kilonova.placement.store.schema import (
    allocations,
    consumer_types,
    consumers,
    provider_traits,
    resource_classes,
    resource_providers,
    traits,
)
from kilonova.sql.engine import Database

SHARING: Final = "MISC_SHARES_VIA_AGGREGATE"
_PAGE: Final = 1000


@dataclass(frozen=True, slots=True)
class Amount:
    """So much of a class, of a provider in the tree of this root. shared: by a provider that lends to many hosts."""

    provider: str
    root: str
    shared: bool
    resource_class: str
    used: int


@dataclass(frozen=True, slots=True)
class Holding:
    """A consumer. age: since it was written last, by the database's clock."""

    consumer: str
    consumer_type: str | None
    generation: int
    project_id: str
    user_id: str
    age: timedelta
    amounts: tuple[Amount, ...]

    def by_class(self) -> dict[str, int]:
        """Sums over all providers."""
        sums: dict[str, int] = {}
        for amount in self.amounts:
            sums[amount.resource_class] = sums.get(amount.resource_class, 0) + amount.used
        return sums

    def by_provider(self) -> dict[str, dict[str, int]]:
        """Amounts by provider uuid and class, as the API has them."""
        found: dict[str, dict[str, int]] = {}
        for amount in self.amounts:
            found.setdefault(amount.provider, {})[amount.resource_class] = amount.used
        return found


_root = resource_providers.alias("root")
_CONSUMERS = (
    sa.select(consumers, consumer_types.c.name.label("type"))
    .outerjoin(consumer_types, consumer_types.c.id == consumers.c.consumer_type_id)
    .where(consumers.c.id > sa.bindparam("after"))
    .order_by(consumers.c.id)
    .limit(_PAGE)
)
_AMOUNTS = (
    sa.select(
        allocations.c.consumer_id, allocations.c.used, resource_providers.c.uuid, resource_providers.c.id,
        _root.c.name.label("root"), resource_classes.c.name.label("resource_class"),
    )
    .join(resource_providers, resource_providers.c.id == allocations.c.provider_id)
    .outerjoin(_root, _root.c.id == resource_providers.c.root_id)
    .join(resource_classes, resource_classes.c.id == allocations.c.class_id)
    .where(allocations.c.consumer_id.in_(sa.bindparam("ids", expanding=True)))
)  # fmt: skip
_LENDERS = (
    sa.select(provider_traits.c.provider_id)
    .join(traits, traits.c.id == provider_traits.c.trait_id)
    .where(traits.c.name == SHARING)
)
_EPOCH: Final = datetime(1970, 1, 1)
_NONE: Final = timedelta()


def pages(database: Database) -> Iterator[list[Holding]]:
    """Every consumer, a page at a time."""
    after, now = 0, _now(database)
    while True:
        with database.read() as connection:
            lenders = set(connection.execute(_LENDERS).scalars())
            rows = connection.execute(_CONSUMERS, {"after": after}).all()
            if not rows:
                return
            after = rows[-1].id
            held: dict[int, list[Amount]] = {}
            for row in connection.execute(_AMOUNTS, {"ids": [row.id for row in rows]}):
                amount = Amount(row.uuid, row.root or "", row.id in lenders, row.resource_class, row.used)
                held.setdefault(row.consumer_id, []).append(amount)
        yield [_holding(row, held[row.id], max(now - row.updated_at, _NONE)) for row in rows if row.id in held]


def _now(database: Database) -> datetime:
    with database.read() as connection:
        return _EPOCH + timedelta(milliseconds=float(connection.execute(sa.select(database.now())).scalar_one()))


def _holding(row: Any, amounts: list[Amount], age: timedelta) -> Holding:
    return Holding(row.uuid, row.type, row.generation, row.project_id, row.user_id, age, tuple(amounts))
