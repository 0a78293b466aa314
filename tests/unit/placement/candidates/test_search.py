"""The engine gives exactly the candidates that trying everything gives."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kilonova.placement.candidates import arrange, join, problem, search
from kilonova.placement.candidates.request import Answers, Group, Query
from kilonova.placement.candidates.snapshot import Facts, Snapshot
from tests.unit.placement.candidates import reference
from tests.unit.placement.candidates.worlds import NOW, SHARES, queries, worlds

both_ways = pytest.mark.parametrize("small", [0, join.SMALL], ids=["search", "join"])
"""Everything searched scope by scope, and everything of these small worlds joined."""

fuzz = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))


def _uuids(snapshot: Snapshot, answers: Answers) -> list[tuple[str, ...]]:
    return [tuple(snapshot.shown[row].uuid for row in rows) for rows in answers.rows]  # type: ignore[union-attr]


@both_ways
@fuzz
@given(world=worlds(), query=queries())
def test_answers_equal_those_of_trying_everything(
    small: int, world: list[Facts], query: Query
) -> None:
    snapshot = arrange.build(world)
    with patch.object(join, "SMALL", small):
        found = _uuids(snapshot, search.find(snapshot, query, sharing=SHARES))
    assert len(found) == len(set(found)), "an answer came twice"
    assert set(found) == reference.find(world, query, SHARES)


@fuzz
@given(worlds(flat=True, sharing=False), queries(nested=False))
def test_flat_answers_equal_those_of_trying_everything(world: list[Facts], query: Query) -> None:
    snapshot = arrange.build(world)
    found = _uuids(snapshot, search.find(snapshot, query, sharing=SHARES))
    assert len(found) == len(set(found))
    assert set(found) == reference.find(world, query, SHARES)


@both_ways
@fuzz
@given(world=worlds(), query=queries(nested=False))
def test_before_nesting_an_answer_never_takes_two_providers_of_one_tree(
    small: int, world: list[Facts], query: Query
) -> None:
    snapshot = arrange.build(world)
    with patch.object(join, "SMALL", small):
        found = _uuids(snapshot, search.find(snapshot, query, sharing=SHARES))
    assert set(found) == reference.find(world, query, SHARES)


@both_ways
@fuzz
@given(world=worlds(), query=queries(), limit=st.integers(1, 4))
def test_a_limit_gives_that_many_of_the_answers_or_all(
    small: int, world: list[Facts], query: Query, limit: int
) -> None:
    snapshot = arrange.build(world)
    every = reference.find(world, query, SHARES)
    with patch.object(join, "SMALL", small):
        found = _uuids(snapshot, search.find(snapshot, replace(query, limit=limit), sharing=SHARES))
    assert len(found) == len(set(found)) == min(limit, len(every))
    assert set(found) <= every


@both_ways
@fuzz
@given(world=worlds(), query=queries(), steps=st.integers(0, 60))
def test_a_search_that_is_cut_gives_answers_all_the_same_and_says_so(
    small: int, world: list[Facts], query: Query, steps: int
) -> None:
    snapshot = arrange.build(world)
    every = reference.find(world, query, SHARES)
    with patch.object(join, "SMALL", small), patch.object(join, "_CHUNK_ROWS", 4):
        answers = search.find(snapshot, replace(query, steps=steps), sharing=SHARES)
    found = _uuids(snapshot, answers)
    assert len(found) == len(set(found))
    assert set(found) <= every
    assert answers.cut or set(found) == every


@both_ways
@fuzz
@given(world=worlds(), query=queries())
def test_what_is_laid_out_in_two_passes_gives_the_same_answers(
    small: int, world: list[Facts], query: Query
) -> None:
    snapshot = arrange.build(world)
    with patch.object(join, "SMALL", small), patch.object(problem, "MOST_PAIRS", 0):
        found = _uuids(snapshot, search.find(snapshot, query, sharing=SHARES))
    assert len(found) == len(set(found))
    assert set(found) == reference.find(world, query, SHARES)


def _host(id_: int, children: int, room: int) -> list[Facts]:
    root = Facts(id_, f"r{id_}", f"r{id_}", 0, None, id_, NOW, {})
    below = [
        Facts(id_ + n, f"c{id_ + n}", f"c{id_ + n}", 0, id_, id_, NOW, {1: (room, 0, 1, 99, 1)})
        for n in range(1, children + 1)
    ]
    return [root, *below]


@both_ways
def test_a_limit_takes_from_every_tree_in_turn(small: int) -> None:
    world = [facts for id_ in (100, 200, 300) for facts in _host(id_, 4, 1)]
    snapshot = arrange.build(world)
    query = Query((Group("_a", ((1, 1),)), Group("_b", ((1, 1),))), isolate=True, limit=3)
    with patch.object(join, "SMALL", small):
        answers = search.find(snapshot, query)
    assert len({int(snapshot.root[rows[0]]) for rows in answers.rows}) == 3


def test_without_breadth_a_limit_exhausts_a_tree_before_the_next() -> None:
    world = [facts for id_ in (100, 200, 300) for facts in _host(id_, 4, 1)]
    snapshot = arrange.build(world)
    query = Query((Group("_a", ((1, 1),)), Group("_b", ((1, 1),))), isolate=True, limit=12, breadth=False)
    answers = search.find(snapshot, query)
    assert len(set(answers.rows)) == 12
    assert len({int(snapshot.root[rows[0]]) for rows in answers.rows}) == 1


def test_eight_equal_groups_on_eight_children_stop_at_the_limit() -> None:
    snapshot = arrange.build(_host(1, 8, 1))
    groups = tuple(Group(f"_{n}", ((1, 1),)) for n in range(8))
    answers = search.find(snapshot, Query(groups, limit=1000))
    assert len(set(answers.rows)) == 1000
    assert not answers.cut


def test_a_hopeless_packing_ends_at_the_bound_of_work() -> None:
    snapshot = arrange.build(_host(1, 12, 5))
    groups = tuple(Group(f"_{n}", ((1, 3),)) for n in range(13))
    answers = search.find(snapshot, Query(groups, steps=20_000))
    assert answers.rows == []


def test_without_a_limit_the_bound_of_work_cuts_and_says_so() -> None:
    snapshot = arrange.build(_host(1, 8, 9))
    groups = tuple(Group(f"_{n}", ((1, 1),)) for n in range(6))
    answers = search.find(snapshot, Query(groups, steps=5_000))
    assert answers.cut
    assert 0 < len(answers.rows) <= 5_000
