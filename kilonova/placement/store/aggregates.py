"""Which aggregates a provider is in. An aggregate is nothing but a UUID that somebody gave."""

from __future__ import annotations

from collections.abc import Collection

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from kilonova.placement.store import providers
from kilonova.placement.store.schema import provider_aggregates
from kilonova.placement.store.transactions import Transaction

_OF = (
    sa.select(provider_aggregates.c.aggregate)
    .where(provider_aggregates.c.provider_id == sa.bindparam("p"))
    .order_by(provider_aggregates.c.aggregate)
)
_ADD = sa.insert(provider_aggregates)
_TAKE = sa.delete(provider_aggregates).where(
    provider_aggregates.c.provider_id == sa.bindparam("p"), provider_aggregates.c.aggregate == sa.bindparam("a")
)


def of(connection: Connection, provider_id: int) -> list[str]:
    """The provider's aggregates, sorted."""
    return list(connection.execute(_OF, {"p": provider_id}).scalars())


def replace(
    transaction: Transaction, uuid: str, wanted: Collection[str], *, compare: bool, generation: int | None = None
) -> int:
    """Make the provider be in exactly these; its generation afterwards.

    With `compare` (microversion 1.19) the generation must match and moves on; before, it is left alone.
    """
    if compare:
        row = providers.advance(transaction, uuid, generation)
        after = int(row.generation) + 1
    else:
        row = providers.locked(transaction, uuid)
        transaction.touch(row.id)
        after = int(row.generation)
    have = set(of(transaction.connection, row.id))
    gone, fresh = sorted(have - set(wanted)), sorted(set(wanted) - have)
    if gone:
        transaction.connection.execute(_TAKE, [{"p": row.id, "a": aggregate} for aggregate in gone])
    if fresh:
        transaction.connection.execute(_ADD, [{"provider_id": row.id, "aggregate": aggregate} for aggregate in fresh])
    return after
