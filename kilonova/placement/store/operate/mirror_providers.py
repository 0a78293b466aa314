"""Providers and their trees, made here as they are at the source: generations, parents, names, times."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import sqlalchemy as sa

from kilonova.core.errors import Conflict
from kilonova.placement.store.operate.source import Provider, SourceUnusable
from kilonova.placement.store.operate.target import Target
from kilonova.placement.store.operate.trees import roots
from kilonova.placement.store.schema import (
    allocations,
    inventories,
    provider_aggregates,
    provider_traits,
    resource_providers,
)


class NameTakenHere(Conflict):
    code = "provider_name_taken"
    message = "A provider {name} was made here and another of that name is at the source: rename or delete one of them."


_OURS = sa.select(resource_providers)
_IDS: Final[sa.BindParameter[Any]] = sa.bindparam("ids", expanding=True)
_DELETES = tuple(
    sa.delete(table).where(table.c.provider_id.in_(_IDS))
    for table in (allocations, inventories, provider_traits, provider_aggregates)
)
_UNHOOK = (
    sa.update(resource_providers).where(resource_providers.c.parent_id.in_(_IDS)).values(parent_id=None),
    sa.update(resource_providers).where(resource_providers.c.root_id.in_(_IDS)).values(root_id=None),
    sa.delete(resource_providers).where(resource_providers.c.id.in_(_IDS)),
)
_INSERT = sa.insert(resource_providers)
_NAME = (
    sa.update(resource_providers).where(resource_providers.c.id == sa.bindparam("i")).values(name=sa.bindparam("n"))
)
_CHANGED = ("name", "generation", "parent_id", "root_id", "created_at", "updated_at")
_UPDATE = (
    sa.update(resource_providers)
    .where(resource_providers.c.id == sa.bindparam("i"))
    .values({name: sa.bindparam(f"v_{name}") for name in _CHANGED})
)
_BATCH = 500


def ours(target: Target) -> dict[str, Any]:
    """The providers that are here, by uuid."""
    return {row.uuid: row for row in target.connection.execute(_OURS)}


def bring(target: Target, theirs: Sequence[Provider], kept: Iterable[str]) -> dict[int, int]:
    """Make them equal; what is neither theirs nor kept goes, with all it has. Our ids by the source's.

    NameTakenHere, SourceUnusable.
    """
    kept = set(kept)
    here = ours(target)
    wanted = {one.uuid for one in theirs}
    _remove(target, [row.id for uuid, row in here.items() if uuid not in wanted and uuid not in kept])
    _refuse_names(theirs, [row.name for uuid, row in here.items() if uuid in kept])
    _step_aside(target, theirs, here)
    fresh = [
        {"uuid": one.uuid, "name": one.name, "generation": one.generation, **one.stamps._asdict()}
        for one in theirs
        if one.uuid not in here
    ]
    target.write(_INSERT, fresh, "providers", "made")
    here = ours(target)
    ids = {one.id: here[one.uuid].id for one in theirs}
    _settle(target, theirs, here, ids)
    _root_again(target, [row for uuid, row in here.items() if uuid in kept], here)
    target.touch(here[row["uuid"]].id for row in fresh)
    return ids


def _remove(target: Target, gone: list[int]) -> None:
    for start in range(0, len(gone), _BATCH):
        batch = {"ids": gone[start : start + _BATCH]}
        for statement in (*_DELETES, *_UNHOOK):
            target.connection.execute(statement, batch)
    target.done["providers", "removed"] += len(gone)
    target.touch(gone)


def _refuse_names(theirs: Sequence[Provider], kept: Iterable[str]) -> None:
    names = {one.name for one in theirs}
    for name in kept:
        if name in names:
            raise NameTakenHere(name=name)


def _step_aside(target: Target, theirs: Sequence[Provider], here: Mapping[str, Any]) -> None:
    """Names may have gone round among providers, and each is there once: first they get names that nobody has."""
    rows = [
        {"i": here[one.uuid].id, "n": f"~{one.uuid}"}
        for one in theirs
        if one.uuid in here and here[one.uuid].name != one.name
    ]
    if rows:
        target.connection.execute(_NAME, rows)


def _settle(target: Target, theirs: Sequence[Provider], here: Mapping[str, Any], ids: Mapping[int, int]) -> None:
    """Parents, roots, and whatever else differs."""
    tops = roots({one.id: one.parent_id for one in theirs})
    looped = [one.name for one in theirs if one.id not in tops]
    if looped:
        reason = f"provider {looped[0]} is its own ancestor"
        raise SourceUnusable(database="of the source", reason=reason)
    rows: list[dict[str, Any]] = []
    fresh: list[dict[str, Any]] = []
    for one in theirs:
        row = here[one.uuid]
        parent = None if one.parent_id is None else ids.get(one.parent_id)
        now = (one.name, one.generation, parent, ids[tops[one.id]], *one.stamps)
        if now != tuple(getattr(row, name) for name in _CHANGED):
            values = {f"v_{name}": value for name, value in zip(_CHANGED, now, strict=True)}
            (fresh if row.root_id is None else rows).append({"i": row.id, **values})
    if fresh:
        target.connection.execute(_UPDATE, fresh)
    target.write(_UPDATE, rows, "providers", "changed")
    target.touch(row["i"] for row in rows + fresh)


def _root_again(target: Target, kept: Sequence[Any], here: Mapping[str, Any]) -> None:
    """Those that stay although the source does not know them may have lost a parent, or hang below another root."""
    tops = roots({row.id: row.parent_id for row in here.values()})
    rows = [
        {"i": row.id, **{f"v_{name}": getattr(row, name) for name in _CHANGED}, "v_root_id": tops[row.id]}
        for row in kept
        if row.root_id != tops[row.id]
    ]
    if rows:
        target.connection.execute(_UPDATE, rows)
        target.touch(row["i"] for row in rows)
