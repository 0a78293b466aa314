"""Inventories and allocations changed together: classes move between providers without a moment of over-commit.

One transaction: each provider first has the union of its old and new inventories, then the allocations are written,
then what is not in the new inventories goes. Anything that fails leaves everything untouched.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from kilonova.placement.errors import UnknownReshaped
from kilonova.placement.store import claims, inventories, providers
from kilonova.placement.store.claims import Claim, Incomplete
from kilonova.placement.store.inventories import Inventory
from kilonova.placement.store.names import Names
from kilonova.placement.store.schema import allocations, resource_providers
from kilonova.placement.store.transactions import Transaction, Writer

_INVOLVED = (
    sa.select(resource_providers.c.id)
    .where(
        sa.or_(
            resource_providers.c.uuid.in_(sa.bindparam("uuids", expanding=True)),
            resource_providers.c.id.in_(
                sa.select(allocations.c.provider_id).where(
                    allocations.c.consumer_id.in_(sa.bindparam("consumers", expanding=True))
                )
            ),
        )
    )
    .order_by(resource_providers.c.id)
)
_LOCK = sa.select(resource_providers.c.id).where(resource_providers.c.id == sa.bindparam("i")).with_for_update()


@dataclass(frozen=True, slots=True)
class Stock:
    """The whole inventory that a provider shall have, and the generation it must have now."""

    generation: int
    inventories: Mapping[str, Inventory]


def reshape(
    writer: Writer, names: Names, stocks: Mapping[str, Stock], wanted: Sequence[Claim], incomplete: Incomplete
) -> None:
    """Replace the inventories of providers (by uuid) and the allocations of consumers, all or nothing.

    UnknownReshaped, GenerationConflict, InventoryInUse, and what `claims.write` raises.
    """

    def work(transaction: Transaction) -> None:
        _lock(transaction, stocks, wanted)
        for uuid, stock in sorted(stocks.items()):
            if stock.inventories:
                inventories.replace(transaction, uuid, stock.generation, stock.inventories, names, keep=True)
            else:
                providers.compare(transaction, uuid, stock.generation)
        claims.apply(transaction, names, wanted, {}, incomplete)
        for uuid, stock in sorted(stocks.items()):
            inventories.replace(transaction, uuid, None, stock.inventories, names)

    writer.run(work)


def _lock(transaction: Transaction, stocks: Mapping[str, Stock], wanted: Sequence[Claim]) -> None:
    """Consumers by uuid, then every provider involved by id: the order of all writers."""
    held = claims.hold(transaction, wanted)
    uuids = {*stocks, *(uuid for claim in wanted for uuid in claim.amounts)}
    consumers = [one.consumer_id for one in held if one.consumer_id is not None]
    involved = transaction.connection.execute(_INVOLVED, {"uuids": sorted(uuids), "consumers": consumers}).scalars()
    for id_ in involved.all():
        transaction.connection.execute(_LOCK, {"i": id_})
    for uuid in stocks:
        if not providers.with_uuid(transaction.connection, uuid):
            raise UnknownReshaped(uuid=uuid)
