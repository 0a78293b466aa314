"""What providers have, made here as it is at the source: inventories, traits, aggregates.

`used` is left to the end of the import. Capacity is computed by our own function.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import sqlalchemy as sa

from kilonova.placement.store.inventories import Inventory
from kilonova.placement.store.operate import source as foreign
from kilonova.placement.store.operate.source import Source
from kilonova.placement.store.operate.target import Target
from kilonova.placement.store.schema import inventories, provider_aggregates, provider_traits

BATCH: Final = 500
_IDS: Final[sa.BindParameter[Any]] = sa.bindparam("ids", expanding=True)
_VALUES: Final = (
    "total", "reserved", "min_unit", "max_unit", "step_size", "allocation_ratio", "capacity",
    "created_at", "updated_at",
)  # fmt: skip
_ONE = sa.and_(inventories.c.provider_id == sa.bindparam("p"), inventories.c.class_id == sa.bindparam("c"))
_OURS = sa.select(inventories).where(inventories.c.provider_id.in_(_IDS))
_INSERT = sa.insert(inventories)
_UPDATE = sa.update(inventories).where(_ONE).values({name: sa.bindparam(f"v_{name}") for name in _VALUES})
_DELETE = sa.delete(inventories).where(_ONE)
_TRAITS = sa.select(provider_traits.c.provider_id, provider_traits.c.trait_id).where(
    provider_traits.c.provider_id.in_(_IDS)
)
_ADD_TRAIT = sa.insert(provider_traits)
_DROP_TRAIT = sa.delete(provider_traits).where(
    provider_traits.c.provider_id == sa.bindparam("p"), provider_traits.c.trait_id == sa.bindparam("x")
)
_AGGREGATES = sa.select(provider_aggregates.c.provider_id, provider_aggregates.c.aggregate).where(
    provider_aggregates.c.provider_id.in_(_IDS)
)
_ADD_AGGREGATE = sa.insert(provider_aggregates)
_DROP_AGGREGATE = sa.delete(provider_aggregates).where(
    provider_aggregates.c.provider_id == sa.bindparam("p"), provider_aggregates.c.aggregate == sa.bindparam("x")
)

Ids = Mapping[int, int]


def bring(target: Target, source: Source, ids: Ids, batch: Sequence[int]) -> None:
    """Make some of the source's providers have what they have there. ids: ours by theirs."""
    mine = [ids[one] for one in batch]
    _inventories(target, source, ids, batch, mine)
    wanted = {(ids[one], target.ids["trait"][name]) for one, name in foreign.read_traits(source, batch)}
    have = {(row[0], row[1]) for row in target.connection.execute(_TRAITS, {"ids": mine})}
    _links(target, have, wanted, (_ADD_TRAIT, _DROP_TRAIT), "provider traits", "trait_id")
    joined = {(ids[one], uuid) for one, uuid in foreign.read_aggregates(source, batch)}
    member = {(row[0], row[1]) for row in target.connection.execute(_AGGREGATES, {"ids": mine})}
    _links(target, member, joined, (_ADD_AGGREGATE, _DROP_AGGREGATE), "provider aggregates", "aggregate")


def _inventories(target: Target, source: Source, ids: Ids, batch: Sequence[int], mine: Sequence[int]) -> None:
    classes = target.ids["class"]
    wanted = {
        (ids[one], classes[name]): _values(row, stamps)
        for one, name, row, stamps in foreign.read_inventories(source, batch)
    }
    have = {
        (row.provider_id, row.class_id): tuple(getattr(row, name) for name in _VALUES)
        for row in target.connection.execute(_OURS, {"ids": mine})
    }
    made = [key for key in wanted if key not in have]
    changed = [key for key in wanted if key in have and wanted[key] != have[key]]
    gone = [key for key in have if key not in wanted]
    target.write(
        _INSERT,
        [
            {"provider_id": p, "class_id": c, "used": 0, **dict(zip(_VALUES, wanted[p, c], strict=True))}
            for p, c in made
        ],
        "inventories", "made",
    )  # fmt: skip
    rows = [
        {"p": p, "c": c, **{f"v_{name}": value for name, value in zip(_VALUES, wanted[p, c], strict=True)}}
        for p, c in changed
    ]
    target.write(_UPDATE, rows, "inventories", "changed")
    target.write(_DELETE, [{"p": p, "c": c} for p, c in gone], "inventories", "removed")
    target.touch(p for p, _ in made + changed + gone)


def _values(row: Any, stamps: foreign.Stamps) -> tuple[Any, ...]:
    found = Inventory(
        row.total, row.reserved, row.min_unit, row.max_unit, row.step_size, float(row.allocation_ratio)
    )  # fmt: skip
    return tuple(getattr(found, name) for name in _VALUES[:-2]) + tuple(stamps)


def _links(
    target: Target, have: set[tuple[int, Any]], wanted: set[tuple[int, Any]],
    statements: tuple[sa.Insert, sa.Delete], what: str, column: str,
) -> None:  # fmt: skip
    """The difference of two sets of pairs, written."""
    add, drop = statements
    new, gone = sorted(wanted - have), sorted(have - wanted)
    target.write(add, [{"provider_id": p, column: x} for p, x in new], what, "made")
    target.write(drop, [{"p": p, "x": x} for p, x in gone], what, "removed")
    target.touch(p for p, _ in new + gone)
