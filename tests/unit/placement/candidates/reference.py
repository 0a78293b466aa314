"""Candidates by trying everything: slow, obvious, written from the rules and not from the engine."""

from __future__ import annotations

from itertools import product

from kilonova.placement.candidates.request import Group, Query
from kilonova.placement.candidates.snapshot import Facts

Found = tuple[tuple[str, ...], ...]


def find(providers: list[Facts], query: Query, sharing: int | None) -> set[tuple[str, ...]]:
    """The uuids per slot of every candidate."""
    slots = _slots(query)
    world = {facts.id: facts for facts in providers}
    found: set[tuple[str, ...]] = set()
    for anchor in providers:
        if anchor.parent_id is not None:
            continue
        scope = [facts for facts in providers if _in_scope(anchor, facts, world, sharing)]
        if not _root_fits(world[anchor.root_id], query):
            continue
        options = [[facts for facts in scope if _fits(facts, group, needs, world, sharing)] for group, needs in slots]
        for choice in product(*options):
            if _amounts_fit(choice, slots, world) and _together(choice, slots, query, world):
                found.add(tuple(facts.uuid for facts in choice))
    return found


def is_candidate(providers: list[Facts], query: Query, sharing: int | None, uuids: tuple[str, ...]) -> bool:
    """Whether these providers, one per slot, are a candidate of one of their own trees."""
    world = {facts.id: facts for facts in providers}
    named = {facts.uuid: facts for facts in providers}
    choice = tuple(named[uuid] for uuid in uuids)
    slots = _slots(query)
    if not all(_fits(one, group, needs, world, sharing) for one, (group, needs) in zip(choice, slots, strict=True)):
        return False
    if not _amounts_fit(choice, slots, world) or not _together(choice, slots, query, world):
        return False
    anchors = {world[facts.root_id].id: world[facts.root_id] for facts in choice}.values()
    return any(
        _root_fits(anchor, query) and all(_in_scope(anchor, facts, world, sharing) for facts in choice)
        for anchor in anchors
    )


def _slots(query: Query) -> list[tuple[Group, tuple[tuple[int, int], ...]]]:
    slots = []
    for group in query.groups:
        slots += [(group, group.resources)] if group.suffix else [(group, (need,)) for need in group.resources]
    return slots


def _in_scope(anchor: Facts, facts: Facts, world: dict[int, Facts], sharing: int | None) -> bool:
    tree = [one for one in world.values() if one.root_id == anchor.id]
    if facts in tree:
        return True
    return sharing in facts.traits and any(set(facts.aggregates) & set(one.aggregates) for one in tree)


def _root_fits(root: Facts, query: Query) -> bool:
    return query.root_required <= set(root.traits) and not query.root_forbidden & set(root.traits)


def _fits(facts: Facts, group: Group, needs, world: dict[int, Facts], sharing: int | None) -> bool:  # type: ignore[no-untyped-def]
    """Whether a provider may serve a slot, whatever serves the others."""
    for class_id, amount in needs:
        if class_id not in facts.inventories:
            return False
        _, _, low, _, step = facts.inventories[class_id]
        if amount < low or amount % step:
            return False
    return _conditions(facts, group, world, sharing)


def _amounts_fit(choice, slots, world) -> bool:  # type: ignore[no-untyped-def]
    sums: dict[tuple[int, int], int] = {}
    for facts, (_, needs) in zip(choice, slots, strict=True):
        for class_id, amount in needs:
            sums[facts.id, class_id] = sums.get((facts.id, class_id), 0) + amount
    for (id_, class_id), amount in sums.items():
        capacity, used, _, high, _ = world[id_].inventories[class_id]
        if used + amount > capacity or amount > high:
            return False
    return True


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
