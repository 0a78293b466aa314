"""Requests made to explode: each ends within the bounds of work and memory, answers what is right, and says it was cut.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from unittest.mock import patch

import pytest

from kilonova.placement.api import candidate_view
from kilonova.placement.candidates import arrange, packing, search
from kilonova.placement.candidates.request import Answers, Group, Query
from kilonova.placement.candidates.snapshot import Facts, Snapshot
from kilonova.placement.store.names import Names
from tests.unit.placement.candidates import reference
from tests.unit.placement.candidates.worlds import NOW, SHARES

MEGABYTES = 250
"""What a search, and as much again what writing its answer may take at most; the worst found are 40 and 180."""

World = tuple[list[Facts], Query]
TEN = dict.fromkeys(range(10, 20), (99, 0, 1, 99, 1))


def _one(
    id_: int, parent: int | None = None, stock: object = None, traits: object = (), aggregates: object = ()
) -> Facts:
    uuid = f"00000000-0000-4000-8000-{id_:012}"
    return Facts(id_, uuid, uuid, 0, parent, id_ if parent is None else parent, NOW, stock or {}, traits, aggregates)  # type: ignore[arg-type]


def _tree(id_: int, children: int, room: int, *, stock: object = None, aggregates: object = ()) -> list[Facts]:
    below = [_one(id_ + n, id_, stock or {1: (room, 0, 1, 10**6, 1)}) for n in range(1, children + 1)]
    return [_one(id_, aggregates=aggregates), *below]


def _forest(trees: int, children: int, room: int, *, stock: object = None, aggregates: object = ()) -> list[Facts]:
    return [one for n in range(trees)
            for one in _tree(1000 * (n + 1), children, room, stock=stock, aggregates=aggregates)]  # fmt: skip


def _pools(count: int, *classes: int) -> list[Facts]:
    stock = dict.fromkeys(classes, (99, 0, 1, 99, 1))
    return [_one(10**7 + n, None, stock, (SHARES,), ("a",)) for n in range(count)]


def _groups(count: int, amount: int = 1, **conditions: object) -> tuple[Group, ...]:
    return tuple(Group(f"_{n}", ((1, amount),), **conditions) for n in range(count))  # type: ignore[arg-type]


def _beside(count: int, *, isolate: bool = False) -> Query:
    """A group with resources and many without, all in one subtree."""
    placing = tuple(Group(f"_r{n}") for n in range(count))
    suffixes = frozenset(group.suffix for group in placing) | {"_0"}
    return Query((*_groups(1), *placing), same_subtree=(suffixes,), isolate=isolate)


def _uneven(trees: int) -> World:
    """Amounts whose sums fit everywhere and that still go nowhere together; in the last tree there is room."""
    hard = [Group(f"_a{n}", ((1, 3), (2, 1))) for n in range(5)] + [Group(f"_b{n}", ((1, 1), (2, 3))) for n in range(6)]
    world = _forest(trees, 9, 0, stock={1: (4, 0, 1, 99, 1), 2: (3, 0, 1, 99, 1)})
    roomy = _tree(10**6, 12, 0, stock={1: (9, 0, 1, 99, 1), 2: (9, 0, 1, 99, 1)})
    return [*world, *roomy], Query(tuple(hard), limit=5)


def _unsuffixed(**conditions: object) -> Query:
    return Query((Group("", tuple((class_id, 1) for class_id in TEN), **conditions),))  # type: ignore[arg-type]


def _lists(groups: int, lists: int) -> tuple[frozenset[str], ...]:
    return tuple(frozenset(f"_{(n * 7 + k * k) % groups}" for k in range(6)) for n in range(lists))


EXPLOSIVE: dict[str, World] = {
    "8 groups, 8 children, no limit": (_tree(1, 8, 99), Query(_groups(8))),
    "64 groups, 64 children": (_tree(1, 64, 99), Query(_groups(64))),
    "64 groups, 64 children, isolated": (_tree(1, 64, 1), Query(_groups(64), isolate=True)),
    "10 classes over 20 providers": (_tree(1, 20, 0, stock=TEN), _unsuffixed()),
    "10 classes over 20 providers in 300 trees": (_forest(300, 20, 0, stock=TEN), _unsuffixed()),
    "the same before nesting, beside pools": (
        [*_forest(100, 20, 0, stock=TEN, aggregates=("a",)), *_pools(20, *TEN)], replace(_unsuffixed(), nested=False)
    ),
    "100 trees, 100 pools, 3 classes": (
        [*_forest(100, 2, 99, aggregates=("a",)), *_pools(100, 2, 3)],
        Query((Group("", ((1, 1), (2, 1), (3, 1))),)),
    ),
    "6 groups without resources, 200 children": (_tree(1, 200, 99), _beside(6)),
    "the same, isolated": (_tree(1, 200, 99), _beside(6, isolate=True)),
    "300 groups in 2000 subtree lists": (_tree(1, 30, 10**6), Query(_groups(300), same_subtree=_lists(300, 2000))),
    "1000 groups, 1000 trees of two": (_forest(1000, 1, 10**6), Query(_groups(1000))),
}  # fmt: skip
ENDLESS: dict[str, World] = {
    "13 groups of 3, 12 children of 5": (_tree(1, 12, 5), Query(_groups(13, 3))),
    "the same in 1000 trees": (_forest(1000, 12, 5), Query(_groups(13, 3))),
    "65 isolated groups, 64 children": (_tree(1, 64, 99), Query(_groups(65), isolate=True)),
    "200 children, 6 isolated groups kept in one": (
        _tree(1, 200, 99), replace(_beside(6, isolate=True), groups=tuple(
            replace(group, in_tree=None, forbidden=frozenset((5,))) for group in _beside(6).groups))
    ),
}  # fmt: skip
ENDLESS = {
    name: ([replace(one, traits=(5,)) if one.parent_id is None else one for one in world], query)
    for name, (world, query) in ENDLESS.items()
}


def _names() -> Names:
    classes = {n: f"CUSTOM_{n}" for n in range(1, 20)}
    return Names({}, classes, {}, {}, {5: "CUSTOM_T", SHARES: "CUSTOM_SHARES"}, {}, {})


def _checked(snapshot: Snapshot, world: list[Facts], query: Query, answers: Answers) -> int:
    """How many answers there are, after some of them were checked by the rules."""
    every = [tuple(snapshot.shown[row].uuid for row in rows) for rows in answers.rows]  # type: ignore[union-attr]
    assert len(set(every)) == len(every)
    for uuids in every[:: max(1, len(every) // 25)]:
        assert reference.is_candidate(world, query, SHARES, uuids)
    return len(every)


@pytest.fixture
def steps() -> Iterator[list[int]]:
    """Counts the rows that searches try."""
    tried = [0]
    place = packing._Search._place

    def counted(self: packing._Search, depth: int, row: int) -> bool:
        tried[0] += 1
        return place(self, depth, row)

    with patch.object(packing._Search, "_place", counted):
        yield tried


@contextmanager
def bounded_memory() -> Iterator[None]:
    """What is done within takes no more than MEGABYTES at any time."""
    tracemalloc.start(1)
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < MEGABYTES * 2**20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", EXPLOSIVE)
def test_an_explosive_request_is_cut_and_what_it_answers_is_right(name: str, steps: list[int]) -> None:
    world, query = EXPLOSIVE[name]
    snapshot = arrange.build(world)
    with bounded_memory():
        answers = search.find(snapshot, query, sharing=SHARES)
    assert steps[0] <= query.steps
    assert answers.cut
    assert len(answers.rows) * len(answers.slots) <= search.MOST_PLACES
    assert _checked(snapshot, world, query, answers) > 0


@pytest.mark.parametrize("name", ["64 groups, 64 children", "8 groups, 8 children, no limit"])
@pytest.mark.parametrize("write", ["encoded", "_as_before"])
def test_the_longest_answers_are_written_in_bounded_memory(name: str, write: str) -> None:
    world, query = EXPLOSIVE[name]
    snapshot = arrange.build(world)
    answers = search.find(snapshot, query, sharing=SHARES)
    with bounded_memory():
        (candidate_view.encoded if write == "encoded" else _as_before)(answers, snapshot, _names())


def _as_before(answers: Answers, snapshot: Snapshot, names: Names) -> bytes:
    return candidate_view.older(
        answers, snapshot, names, nested=True, by_provider=True, traits=True, all_classes=True
    )


@pytest.mark.parametrize("name", ENDLESS)
def test_a_request_that_fits_nowhere_is_seen_to_without_trying_everything(name: str, steps: list[int]) -> None:
    world, query = ENDLESS[name]
    answers = search.find(arrange.build(world), query, sharing=SHARES)
    assert answers.rows == []
    assert not answers.cut
    assert steps[0] <= query.steps // 4


def test_trees_that_take_long_for_nothing_do_not_keep_others_from_answering(steps: list[int]) -> None:
    world, query = _uneven(50)
    snapshot = arrange.build(world)
    for asked in (query, replace(query, limit=None), replace(query, breadth=False)):
        answers = search.find(snapshot, asked, sharing=SHARES)
        assert _checked(snapshot, world, asked, answers) >= 5
    assert steps[0] <= 3 * query.steps


def test_what_is_known_to_lead_to_nothing_takes_bounded_memory() -> None:
    hard = tuple(Group(f"_{n}", ((1, 7 + n % 5),)) for n in range(40))
    snapshot = arrange.build(_tree(1, 20, 20))
    with bounded_memory():
        answers = search.find(snapshot, Query(hard))
    assert answers.cut


def test_more_groups_than_the_interpreter_has_frames_are_placed() -> None:
    world = _tree(1, 2, 10**6)
    snapshot = arrange.build(world)
    query = Query(_groups(1200), limit=3)
    assert _checked(snapshot, world, query, search.find(snapshot, query)) == 3


def test_pools_that_answer_alone_are_found_once_over_any_number_of_trees() -> None:
    world = [*_forest(100, 2, 99, aggregates=("a",)), *_pools(30, 2, 3)]
    snapshot = arrange.build(world)
    query = Query((Group("", ((2, 1), (3, 1))),))
    assert _checked(snapshot, world, query, search.find(snapshot, query, sharing=SHARES)) == 900
