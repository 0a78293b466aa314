"""From rows of tables to the facts that snapshots are made of."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from kilonova.placement.candidates.arrange import Usage
from kilonova.placement.candidates.snapshot import Facts
from kilonova.placement.store.schema import inventories, provider_aggregates, provider_traits, resource_providers

_CHUNK = 500

_ids: sa.BindParameter[int] = sa.bindparam("ids", expanding=True)
_PROVIDERS = sa.select(
    resource_providers.c.id,
    resource_providers.c.uuid,
    resource_providers.c.name,
    resource_providers.c.generation,
    resource_providers.c.parent_id,
    resource_providers.c.root_id,
    resource_providers.c.updated_at,
)
_INVENTORIES = sa.select(
    inventories.c.provider_id,
    inventories.c.class_id,
    inventories.c.capacity,
    inventories.c.used,
    inventories.c.min_unit,
    inventories.c.max_unit,
    inventories.c.step_size,
)
_TRAITS = sa.select(provider_traits.c.provider_id, provider_traits.c.trait_id).order_by(provider_traits.c.trait_id)
_AGGREGATES = sa.select(provider_aggregates.c.provider_id, provider_aggregates.c.aggregate).order_by(
    provider_aggregates.c.aggregate
)
_ROOTS_OF = sa.select(resource_providers.c.root_id).where(resource_providers.c.id.in_(_ids)).distinct()
_IN_TREES = _PROVIDERS.where(resource_providers.c.root_id.in_(_ids))
_INVENTORIES_OF = _INVENTORIES.where(inventories.c.provider_id.in_(_ids))
_TRAITS_OF = _TRAITS.where(provider_traits.c.provider_id.in_(_ids))
_AGGREGATES_OF = _AGGREGATES.where(provider_aggregates.c.provider_id.in_(_ids))
_USED_OF = (
    sa.select(resource_providers.c.id, resource_providers.c.generation, inventories.c.class_id, inventories.c.used)
    .outerjoin_from(resource_providers, inventories, inventories.c.provider_id == resource_providers.c.id)
    .where(resource_providers.c.id.in_(_ids))
)
_CHECKSUM = sa.select(
    sa.select(sa.func.count(resource_providers.c.id)).scalar_subquery(),
    sa.select(sa.func.coalesce(sa.func.sum(resource_providers.c.generation), 0)).scalar_subquery(),
    sa.select(sa.func.coalesce(sa.func.sum(inventories.c.used), 0)).scalar_subquery(),
)


def everything(connection: Connection) -> list[Facts]:
    """All providers."""
    return _facts(
        connection.execute(_PROVIDERS).all(),
        connection.execute(_INVENTORIES),
        connection.execute(_TRAITS),
        connection.execute(_AGGREGATES),
    )


def trees(connection: Connection, touched: Collection[int], roots: Collection[int]) -> list[Facts]:
    """The complete trees, as they are now, of some providers and of some roots."""
    wanted = set(roots)
    for ids in _chunks(touched):
        wanted.update(connection.execute(_ROOTS_OF, {"ids": ids}).scalars())
    found: list[Any] = []
    for ids in _chunks(wanted):
        found.extend(connection.execute(_IN_TREES, {"ids": ids}))
    parts: tuple[list[Any], list[Any], list[Any]] = ([], [], [])
    for ids in _chunks([row.id for row in found]):
        for part, statement in zip(parts, (_INVENTORIES_OF, _TRAITS_OF, _AGGREGATES_OF), strict=True):
            part.extend(connection.execute(statement, {"ids": ids}))
    return _facts(found, *parts)


def usages(connection: Connection, touched: Collection[int]) -> dict[int, Usage]:
    """Generation and use of some providers."""
    found: dict[int, tuple[int, dict[int, int]]] = {}
    for ids in _chunks(touched):
        for id_, generation, class_id, used in connection.execute(_USED_OF, {"ids": ids}):
            by_class = found.setdefault(id_, (generation, {}))[1]
            if class_id is not None:
                by_class[class_id] = used
    return {**found}


def checksum(connection: Connection) -> tuple[int, int, int]:
    """Number of providers, sum of generations, sum of use (see `snapshot.checksum`)."""
    count, generations, used = connection.execute(_CHECKSUM).one()
    return int(count), int(generations), int(used)


def _facts(
    providers: Sequence[Any], held: Iterable[Any], traits: Iterable[Any], aggregates: Iterable[Any]
) -> list[Facts]:
    stock: dict[int, dict[int, tuple[int, int, int, int, int]]] = {}
    for id_, class_id, capacity, used, low, high, step in held:
        stock.setdefault(id_, {})[class_id] = (capacity, used, low, high, step)
    traits_of = _gathered(traits)
    aggregates_of = _gathered(aggregates)
    none: dict[int, tuple[int, int, int, int, int]] = {}
    return [
        Facts(
            id_, uuid, name, generation, parent, root, at,
            stock.get(id_, none), traits_of.get(id_, ()), aggregates_of.get(id_, ()),
        )
        for id_, uuid, name, generation, parent, root, at in providers
        if root is not None
    ]  # fmt: skip


def _gathered(rows: Iterable[Any]) -> dict[int, tuple[Any, ...]]:
    """Values by provider; equal tuples are one object, since many hosts are alike."""
    lists: dict[int, list[Any]] = {}
    for id_, value in rows:
        lists.setdefault(id_, []).append(value)
    alike: dict[tuple[Any, ...], tuple[Any, ...]] = {}
    return {id_: alike.setdefault(found, found) for id_, values in lists.items() for found in (tuple(values),)}


def _chunks(ids: Collection[int]) -> Iterator[list[int]]:
    ordered = sorted(ids)
    for start in range(0, len(ordered), _CHUNK):
        yield ordered[start : start + _CHUNK]
