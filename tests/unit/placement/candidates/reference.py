"""Candidates by trying everything: slow, obvious, written from the rules and not from the engine."""

from __future__ import annotations

from itertools import product

from kilonova.placement.candidates.request import Group, Query
from kilonova.placement.candidates.snapshot import Facts

Found = tuple[tuple[str, ...], ...]


def find(providers: list[Facts], query: Query, sharing: int | None) -> set[tuple[str, ...]]:
    """The uuids per slot of every candidate."""
    slots = []
    for group in query.groups:
        slots += [(group, group.resources)] if group.suffix else [(group, (need,)) for need in group.resources]
    world = {facts.id: facts for facts in providers}
    found: set[tuple[str, ...]] = set()
    for anchor in providers:
        if anchor.parent_id is not None:
            continue
        scope = [facts for facts in providers if _in_scope(anchor, facts, world, sharing)]
        if not _root_fits(world[anchor.root_id], query):
            continue
        for choice in product(scope, repeat=len(slots)):
            if _valid(choice, slots, query, world, sharing):
                found.add(tuple(facts.uuid for facts in choice))
    return found


def _in_scope(anchor: Facts, facts: Facts, world: dict[int, Facts], sharing: int | None) -> bool:
    tree = [one for one in world.values() if one.root_id == anchor.id]
    if facts in tree:
        return True
    return sharing in facts.traits and any(set(facts.aggregates) & set(one.aggregates) for one in tree)


def _root_fits(root: Facts, query: Query) -> bool:
    return query.root_required <= set(root.traits) and not query.root_forbidden & set(root.traits)


def _valid(choice, slots, query, world, sharing) -> bool:  # type: ignore[no-untyped-def]
    sums: dict[tuple[int, int], int] = {}
    for facts, (group, needs) in zip(choice, slots, strict=True):
        for class_id, amount in needs:
            if class_id not in facts.inventories:
                return False
            _, _, low, _, step = facts.inventories[class_id]
            if amount < low or amount % step:
                return False
            sums[facts.id, class_id] = sums.get((facts.id, class_id), 0) + amount
        if not _conditions(facts, group, world, sharing):
            return False
    for (id_, class_id), amount in sums.items():
        capacity, used, _, high, _ = world[id_].inventories[class_id]
        if used + amount > capacity or amount > high:
            return False
    return _together(choice, slots, query, world)


def _conditions(facts: Facts, group: Group, world: dict[int, Facts], sharing: int | None) -> bool:
    traits, root = set(facts.traits), world[facts.root_id]
    if group.suffix and not all(traits & any_of for any_of in group.required):
        return False
    if traits & group.forbidden:
        return False
    aggregates = set(facts.aggregates)
    if not group.suffix and sharing not in facts.traits:
        aggregates |= set(root.aggregates)
    if not all(aggregates & any_of for any_of in group.member_of) or aggregates & group.not_member_of:
        return False
    if group.in_tree is not None:
        named = [one for one in world.values() if one.uuid == group.in_tree]
        return bool(named) and named[0].root_id == facts.root_id
    return True


def _together(choice, slots, query, world) -> bool:  # type: ignore[no-untyped-def]
    suffixed = [facts.id for facts, (group, _) in zip(choice, slots, strict=True) if group.suffix]
    if not query.nested and any(one.root_id == two.root_id and one != two for one in choice for two in choice):
        return False
    if query.isolate and len(set(suffixed)) < len(suffixed):
        return False
    for group in query.groups:
        if not group.suffix:
            mine = [facts for facts, (owner, _) in zip(choice, slots, strict=True) if owner is group]
            held = {trait for facts in mine for trait in facts.traits}
            if not all(held & any_of for any_of in group.required):
                return False
    for suffixes in query.same_subtree:
        mine = [facts for facts, (group, _) in zip(choice, slots, strict=True) if group.suffix in suffixes]
        if mine and not any(all(_above(top, other, world) for other in mine) for top in mine):
            return False
    return True


def _above(top: Facts, other: Facts, world: dict[int, Facts]) -> bool:
    while other.id != top.id:
        if other.parent_id is None:
            return False
        other = world[other.parent_id]
    return True
