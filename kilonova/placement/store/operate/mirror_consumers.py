"""Consumers and their allocations, made here as they are at the source, a page of consumers at a time."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final

import sqlalchemy as sa

from kilonova.placement.store.changes import What
from kilonova.placement.store.operate import source as foreign
from kilonova.placement.store.operate.source import PAGE, Consumer, Source
from kilonova.placement.store.operate.target import Target
from kilonova.placement.store.schema import allocations, consumers

_IDS: Final[sa.BindParameter[Any]] = sa.bindparam("ids", expanding=True)
_VALUES: Final = ("project_id", "user_id", "generation", "consumer_type_id", "created_at", "updated_at")
_OURS = sa.select(consumers).where(consumers.c.uuid.in_(_IDS))
_INSERT = sa.insert(consumers)
_UPDATE = (
    sa.update(consumers)
    .where(consumers.c.id == sa.bindparam("i"))
    .values({name: sa.bindparam(f"v_{name}") for name in _VALUES})
)
_DELETE = sa.delete(consumers).where(consumers.c.id.in_(_IDS))
_PAGE = (
    sa.select(consumers.c.id, consumers.c.uuid)
    .where(consumers.c.id > sa.bindparam("after"))
    .order_by(consumers.c.id)
    .limit(PAGE)
)
_HELD = sa.select(allocations).where(allocations.c.consumer_id.in_(_IDS))
_ALLOCATE = sa.insert(allocations)
_AMOUNT = (
    sa.update(allocations)
    .where(allocations.c.id == sa.bindparam("i"))
    .values(used=sa.bindparam("n"), created_at=sa.bindparam("made"), updated_at=sa.bindparam("at"))
)
_RELEASE = sa.delete(allocations).where(allocations.c.id == sa.bindparam("i"))
_ON = sa.select(allocations.c.consumer_id).distinct().where(allocations.c.provider_id.in_(_IDS))

Key = tuple[int, int, int]
"""Consumer, provider and class; ids are ours."""


def bring(target: Target, source: Source, ids: Mapping[int, int], page: Sequence[Consumer]) -> int:
    """Make a page of consumers hold what they hold there. ids: of providers, ours by theirs. How many allocations."""
    here = _records(target, page)
    wanted = _wanted(target, source, ids, here)
    have = {
        (row.consumer_id, row.provider_id, row.class_id): row
        for row in target.connection.execute(_HELD, {"ids": [row.id for row in here.values()]})
    }
    gone = [key for key in have if key not in wanted]
    made = [key for key in wanted if key not in have]
    changed = [
        key for key in wanted
        if key in have and wanted[key] != (have[key].used, have[key].created_at, have[key].updated_at)
    ]  # fmt: skip
    target.write(_RELEASE, [{"i": have[key].id} for key in gone], "allocations", "removed")
    fields = ("consumer_id", "provider_id", "class_id", "used", "created_at", "updated_at")
    target.write(
        _ALLOCATE, [dict(zip(fields, (*key, *wanted[key]), strict=True)) for key in made], "allocations", "made"
    )
    rows = [
        {"i": have[key].id, **dict(zip(("n", "made", "at"), wanted[key], strict=True))} for key in changed
    ]  # fmt: skip
    target.write(_AMOUNT, rows, "allocations", "changed")
    target.touch({key[1] for key in gone + made + changed}, What.USAGE)
    return len(wanted)


def remove_gone(target: Target, source: Source, kept: Collection[int]) -> None:
    """Take away the consumers that hold nothing at the source. kept: the ids of those to leave."""
    for page in _pages(target):
        held = foreign.holders(source, [row.uuid for row in page])
        gone = [row.id for row in page if row.uuid not in held and row.id not in kept]
        if not gone:
            continue
        rows = target.connection.execute(_HELD, {"ids": gone}).all()
        target.write(_RELEASE, [{"i": row.id} for row in rows], "allocations", "removed")
        target.connection.execute(_DELETE, {"ids": gone})
        target.done["consumers", "removed"] += len(gone)
        target.touch({row.provider_id for row in rows}, What.USAGE)


def only_here(target: Target, source: Source, providers: Collection[int]) -> set[int]:
    """The ids of consumers that hold something of these providers of ours, and nothing at the source."""
    if not providers:
        return set()
    on = set(target.connection.execute(_ON, {"ids": list(providers)}).scalars())
    found: set[int] = set()
    for page in _pages(target):
        ours = {row.uuid: row.id for row in page if row.id in on}
        found |= {ours[uuid] for uuid in ours.keys() - foreign.holders(source, list(ours))} if ours else set()
    return found


def _pages(target: Target) -> Iterator[Sequence[Any]]:
    after = 0
    while page := target.connection.execute(_PAGE, {"after": after}).all():
        after = page[-1].id
        yield page


def _records(target: Target, page: Sequence[Consumer]) -> dict[str, Any]:
    """The consumers' own rows, made and changed as need be, by uuid."""
    uuids = {"ids": [one.uuid for one in page]}
    here = {row.uuid: row for row in target.connection.execute(_OURS, uuids)}
    fresh, rows = [], []
    for one in page:
        kind = None if one.type_name is None else target.ids["type"][one.type_name]
        now = (one.project_id, one.user_id, one.generation, kind, *one.stamps)
        row = here.get(one.uuid)
        if row is None:
            fresh.append({"uuid": one.uuid, **dict(zip(_VALUES, now, strict=True))})
        elif now != tuple(getattr(row, name) for name in _VALUES):
            rows.append({"i": row.id, **{f"v_{name}": value for name, value in zip(_VALUES, now, strict=True)}})
    target.write(_INSERT, fresh, "consumers", "made")
    target.write(_UPDATE, rows, "consumers", "changed")
    return {row.uuid: row for row in target.connection.execute(_OURS, uuids)} if fresh else here


def _wanted(
    target: Target, source: Source, ids: Mapping[int, int], here: Mapping[str, Any]
) -> dict[Key, tuple[Any, ...]]:
    """Amount and times by key. The source may have one key twice: the amounts are added."""
    wanted: dict[Key, tuple[Any, ...]] = {}
    for consumer, provider_id, name, used, stamps in foreign.read_allocations(source, list(here)):
        if provider_id in ids:
            key = (here[consumer].id, ids[provider_id], target.ids["class"][name])
            before = wanted.get(key, (0,))[0]
            wanted[key] = (before + used, *stamps)
    return wanted
