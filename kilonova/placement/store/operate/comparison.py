"""Whether an import brought everything: counts of rows and sums per class, at the source and here."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from kilonova.placement.store import schema
from kilonova.placement.store.operate import source as foreign
from kilonova.placement.store.operate.source import UNRECORDED, Source, whole


@dataclass(frozen=True, slots=True)
class Compared:
    """One count or sum."""

    what: str
    source: int
    here: int


_count = sa.func.count
_provider_there = foreign.providers.c.id
_STOCKED = sa.and_(
    foreign.inventories.c.resource_provider_id.in_(sa.select(_provider_there).correlate(None)),
    foreign.inventories.c.resource_class_id.in_(sa.select(foreign.classes.c.id).correlate(None)),
)
_key = (
    foreign.allocations.c.consumer_id, foreign.allocations.c.resource_provider_id,
    foreign.allocations.c.resource_class_id,
)  # fmt: skip
_THERE = {
    "providers": sa.select(_count()).select_from(foreign.providers),
    "roots": sa.select(_count()).where(foreign.providers.c.parent_provider_id.is_(None)),
    "generations": sa.select(sa.func.sum(foreign.providers.c.generation)),
    "inventories": sa.select(_count()).select_from(foreign.inventories).where(_STOCKED),
    "provider traits": sa.select(_count()).select_from(
        foreign.provider_traits.join(foreign.traits, foreign.traits.c.id == foreign.provider_traits.c.trait_id)
    ),
    "provider aggregates": sa.select(_count())
    .select_from(
        foreign.provider_aggregates.join(
            foreign.aggregates, foreign.aggregates.c.id == foreign.provider_aggregates.c.aggregate_id
        )
    )
    .where(foreign.aggregates.c.uuid.is_not(None)),
    "consumers": sa.select(_count(foreign.allocations.c.consumer_id.distinct())).where(whole),
    "allocations": sa.select(_count()).select_from(sa.select(*_key).where(whole).distinct().subquery()),
}
_TOTALS_THERE = (
    sa.select(foreign.classes.c.name, sa.func.sum(foreign.inventories.c.total))
    .join(foreign.classes, foreign.classes.c.id == foreign.inventories.c.resource_class_id)
    .where(_STOCKED)
    .group_by(foreign.classes.c.name)
)
_USED_THERE = (
    sa.select(foreign.classes.c.name, sa.func.sum(foreign.allocations.c.used))
    .join(foreign.classes, foreign.classes.c.id == foreign.allocations.c.resource_class_id)
    .where(whole)
    .group_by(foreign.classes.c.name)
)
_ALL_ALLOCATIONS = sa.select(_count()).select_from(foreign.allocations)
_WHOLE_ALLOCATIONS = sa.select(_count()).select_from(foreign.allocations).where(whole)
_IDLE = (
    sa.select(_count())
    .select_from(foreign.consumers)
    .where(~sa.exists().where(foreign.allocations.c.consumer_id == foreign.consumers.c.uuid))
)
_UNRECORDED = sa.select(_count(foreign.allocations.c.consumer_id.distinct())).where(UNRECORDED)

_here = schema.resource_providers.c
_known = _here.id.not_in(sa.bindparam("providers", expanding=True))
_consumer = schema.allocations.c.consumer_id.not_in(sa.bindparam("consumers", expanding=True))


def _of_provider(table: sa.Table) -> sa.ColumnElement[bool]:
    return table.c.provider_id.not_in(sa.bindparam("providers", expanding=True))


_OURS = {
    "providers": sa.select(_count()).select_from(schema.resource_providers).where(_known),
    "roots": sa.select(_count()).where(_here.parent_id.is_(None), _here.root_id == _here.id, _known),
    "generations": sa.select(sa.func.sum(_here.generation)).where(_known),
    "inventories": sa.select(_count()).select_from(schema.inventories).where(_of_provider(schema.inventories)),
    "provider traits": sa.select(_count())
    .select_from(schema.provider_traits)
    .where(_of_provider(schema.provider_traits)),
    "provider aggregates": sa.select(_count())
    .select_from(schema.provider_aggregates)
    .where(_of_provider(schema.provider_aggregates)),
    "consumers": sa.select(_count())
    .select_from(schema.consumers)
    .where(schema.consumers.c.id.not_in(sa.bindparam("consumers", expanding=True))),
    "allocations": sa.select(_count()).select_from(schema.allocations).where(_consumer),
}
_TOTALS = (
    sa.select(schema.resource_classes.c.name, sa.func.sum(schema.inventories.c.total))
    .join(schema.resource_classes, schema.resource_classes.c.id == schema.inventories.c.class_id)
    .where(_of_provider(schema.inventories))
    .group_by(schema.resource_classes.c.name)
)
_USED = (
    sa.select(schema.resource_classes.c.name, sa.func.sum(schema.allocations.c.used))
    .join(schema.resource_classes, schema.resource_classes.c.id == schema.allocations.c.class_id)
    .where(_consumer)
    .group_by(schema.resource_classes.c.name)
)


def compare(
    source: Source, connection: Connection, providers: Collection[int], consumers: Collection[int]
) -> list[Compared]:
    """Every count and sum. providers, consumers: ids of ours that the source is not to know, which do not count."""
    kept: dict[str, Any] = {"providers": list(providers), "consumers": list(consumers)}
    rows = [
        Compared(what, _one(source.all(statement)), _one(connection.execute(_OURS[what], _used_by(what, kept)).all()))
        for what, statement in _THERE.items()
    ]
    totals = {"providers": kept["providers"]}
    rows += _by_class("total", source.all(_TOTALS_THERE), connection.execute(_TOTALS, totals).all())
    used = {"consumers": kept["consumers"]}
    return rows + _by_class("allocated", source.all(_USED_THERE), connection.execute(_USED, used).all())


def left_out(source: Source) -> list[str]:
    """A sentence for each kind of row of the source that is not brought as it is."""
    broken = _one(source.all(_ALL_ALLOCATIONS)) - _one(source.all(_WHOLE_ALLOCATIONS))
    idle, unrecorded = _one(source.all(_IDLE)), _one(source.all(_UNRECORDED))
    said = (
        (broken, "allocations of providers or classes that are not there are left out"),
        (idle, "consumers that hold nothing are left out"),
        (unrecorded, "consumers without a record are brought as incomplete ones"),
    )
    return [f"{count} {words}" for count, words in said if count]


def allocations(source: Source) -> int:
    """How many there are to bring."""
    return _one(source.all(_THERE["allocations"]))


def _used_by(what: str, kept: dict[str, Any]) -> dict[str, Any]:
    name = "consumers" if what in ("consumers", "allocations") else "providers"
    return {name: kept[name]}


def _one(rows: Any) -> int:
    return int(rows[0][0] or 0)


def _by_class(word: str, there: Any, here: Any) -> list[Compared]:
    left = {name: int(amount) for name, amount in there}
    right = {name: int(amount) for name, amount in here}
    return [Compared(f"{name} {word}", left.get(name, 0), right.get(name, 0)) for name in sorted(left.keys() | right)]
