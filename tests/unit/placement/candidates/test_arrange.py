"""A snapshot that was changed equals one that was built anew."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kilonova.placement.candidates import arrange, search
from kilonova.placement.candidates.snapshot import Facts, Rows, Snapshot, checksum
from tests.unit.placement.candidates.worlds import SHARES, queries, worlds

fuzz = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))


def _seen(snapshot: Snapshot, query: object) -> set[tuple[str, ...]]:
    answers = search.find(snapshot, query, sharing=SHARES)  # type: ignore[arg-type]
    return {tuple(snapshot.shown[row].uuid for row in rows) for rows in answers.rows}  # type: ignore[union-attr]


def _tree_change(before: list[Facts], after: list[Facts]) -> tuple[list[Facts], set[int]]:
    """The trees that a store would send when everything that differs was touched."""
    old, new = {one.id: one for one in before}, {one.id: one for one in after}
    touched = {id_ for id_ in old.keys() | new.keys() if old.get(id_) != new.get(id_)}
    roots = {world[id_].root_id for world in (old, new) for id_ in touched if id_ in world}
    roots |= {new[id_].root_id for id_ in list(roots) if id_ in new}
    # whoever stood in one of the old trees may stand in another now
    moved = {one.id for one in before if one.root_id in roots}
    roots |= {new[id_].root_id for id_ in moved if id_ in new}
    return [one for one in after if one.root_id in roots], {one.id for one in before} - set(new)


@fuzz
@given(st.lists(worlds(), min_size=2, max_size=4), queries())
def test_changes_give_the_same_answers_as_building_anew(history: list[list[Facts]], query: object) -> None:
    snapshot = arrange.build(history[0])
    for before, after in pairwise(history):
        snapshot = arrange.change(snapshot, *_tree_change(before, after))
    fresh = arrange.build(history[-1])
    assert checksum(snapshot) == checksum(fresh)
    assert snapshot.flat == fresh.flat
    assert _seen(snapshot, query) == _seen(fresh, query)


@fuzz
@given(worlds(), worlds(size=9), queries(), st.data())
def test_an_edit_in_place_equals_building_anew_and_never_changes_the_old_snapshot(
    world: list[Facts], other: list[Facts], query: object, data: st.DataObject
) -> None:
    snapshot = arrange.build(world)
    before, seen = checksum(snapshot), _seen(snapshot, query)
    root = data.draw(st.sampled_from(world)).root_id
    looks = {one.id: data.draw(st.sampled_from(other)) for one in world if one.root_id == root}
    after = [
        replace(one, generation=9, inventories=look.inventories, traits=look.traits, aggregates=look.aggregates)
        if (look := looks.get(one.id)) else one
        for one in world
    ]  # fmt: skip
    edited = arrange.change(snapshot, [one for one in after if one.root_id == root], ())
    fresh = arrange.build(after)
    assert len(edited) == len(snapshot)
    assert (checksum(snapshot), _seen(snapshot, query)) == (before, seen)
    assert (checksum(edited), _seen(edited, query)) == (checksum(fresh), _seen(fresh, query))
    assert {name: _ids(edited, rows) for name, rows in edited.aggregates.items()} == {
        name: _ids(fresh, rows) for name, rows in fresh.aggregates.items()
    }
    assert edited.columns.keys() == fresh.columns.keys()
    for class_id, column in fresh.columns.items():
        mine = edited.columns[class_id]
        assert (mine.low_max, mine.high_min, mine.plain) == (column.low_max, column.high_min, column.plain)
        assert dict(zip(_ids(edited, mine.rows), mine.room.tolist(), strict=True)) == dict(
            zip(_ids(fresh, column.rows), column.room.tolist(), strict=True)
        )


def _ids(snapshot: Snapshot, rows: Rows) -> list[int]:
    return [snapshot.shown[row].id for row in rows.tolist()]  # type: ignore[union-attr]


@fuzz
@given(worlds(), st.integers(0, 5), st.data())
def test_use_changes_the_new_snapshot_and_never_the_old_one(world: list[Facts], use: int, data: st.DataObject) -> None:
    snapshot = arrange.build(world)
    before = checksum(snapshot)
    one = data.draw(st.sampled_from(world))
    usages = {one.id: (one.generation + 1, dict.fromkeys(one.inventories, use)), 999: (1, dict[int, int]())}
    after = arrange.with_usage(snapshot, usages)
    assert checksum(snapshot) == before
    used = {id_: (n[0], use, *n[2:]) for id_, n in one.inventories.items()}
    fresh = arrange.build([
        replace(facts, generation=one.generation + 1, inventories=used) if facts.id == one.id else facts
        for facts in world
    ])  # fmt: skip
    assert checksum(after) == checksum(fresh)
    for class_id, column in fresh.columns.items():
        assert np.array_equal(column.room, after.columns[class_id].room)
