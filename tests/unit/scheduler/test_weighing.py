"""Normalisation, multipliers and ranking."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kilonova.core.request_spec import GroupSpec
from kilonova.scheduler import registry
from kilonova.scheduler.host_state import Aggregates, HostState, consume
from kilonova.scheduler.plugins import Weigher
from kilonova.scheduler.settings import SchedulerSettings
from kilonova.scheduler.stages import pick_order
from kilonova.scheduler.weighing import Ranking, normalise, ordered
from tests.scheduler.states import SMALL, aggregate, request, state

WEIGHERS = registry.enabled_weighers(SchedulerSettings())
NONE = math.nan
finite = st.floats(-1e9, 1e9, allow_nan=False)


def one(values: list[float], minimum: float = NONE, maximum: float = NONE) -> list[float]:
    return [float(v) for v in normalise(np.array([values]), np.array([minimum]), np.array([maximum]))[0]]


def scores(states: list[HostState], *names: str, **asked: object) -> list[float]:
    rows = [registry.WEIGHERS[name] for name in names]
    ranking = Ranking(rows, request(**asked), states)  # type: ignore[arg-type]
    return [float(v) for v in ranking.scores(range(len(states)))[0]]


@pytest.mark.parametrize(
    ("values", "minimum", "maximum", "expected"),
    [
        ([1, 2, 3], NONE, NONE, [0, 0.5, 1]),
        ([5, 5], NONE, NONE, [0, 0]),
        ([5, 5], 0, NONE, [1, 1]),  # a fixed minimum of 0 and equal positive values
        ([0, 0], 0, NONE, [0, 0]),
        ([-4, -2], 0, NONE, [0, 0]),  # negatives count as 0
        ([-4, 10], 0, NONE, [0, 1]),
        ([5, 10], 0, NONE, [0.5, 1]),
        ([5, 50], 0, 10, [0.5, 1]),  # clamped to the fixed maximum
        ([50, 60], NONE, 10, [0, 0]),
    ],
)
def test_values_are_scaled_between_their_ends(
    values: list[float], minimum: float, maximum: float, expected: list[float]
) -> None:
    assert one(values, minimum, maximum) == expected


@given(
    values=st.lists(finite, min_size=1, max_size=20),
    minimum=st.one_of(st.just(NONE), finite),
    maximum=st.one_of(st.just(NONE), finite),
)
def test_a_scaled_value_is_between_0_and_1_and_keeps_the_order(
    values: list[float], minimum: float, maximum: float
) -> None:
    scaled = one(values, minimum, maximum)
    assert all(0.0 <= value <= 1.0 for value in scaled)
    pairs = sorted(zip(values, scaled, strict=True))
    assert [b for _, b in pairs] == sorted(b for _, b in pairs)


@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**6)), min_size=2, max_size=12), st.randoms())
def test_a_score_does_not_depend_on_the_order_of_the_hosts(rows: list[tuple[int, int]], chance: object) -> None:
    states = [state(f"h{n}", free_ram_mb=ram, free_disk_mb=disk) for n, (ram, disk) in enumerate(rows)]
    shuffled = list(states)
    chance.shuffle(shuffled)  # type: ignore[attr-defined]

    def by_host(these: list[HostState]) -> dict[str, float]:
        totals = Ranking(WEIGHERS, request(), these).scores(range(len(these)))[0]
        return {host.host: total for host, total in zip(these, totals, strict=True)}

    assert by_host(states) == pytest.approx(by_host(shuffled))


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=12))
def test_equal_scores_keep_their_order(raw: list[int]) -> None:
    order = ordered(range(len(raw)), np.array(raw, dtype=float))
    assert order == sorted(range(len(raw)), key=lambda index: -raw[index])


def test_more_free_memory_cpus_and_disk_win_and_more_io_loses() -> None:
    assert scores([state("a", free_ram_mb=1), state("b", free_ram_mb=2)], "RAMWeigher") == [0.5, 1]
    assert scores([state("a", vcpus_used=16), state("b")], "CPUWeigher") == [0.5, 1]
    assert scores([state("a", free_disk_mb=1), state("b", free_disk_mb=4)], "DiskWeigher") == [0.25, 1]
    assert scores([state("a", num_io_ops=1), state("b", num_io_ops=2)], "IoOpsWeigher") == [-0.5, -1]
    assert scores([state("a", hypervisor_version=1), state("b", hypervisor_version=2)], "HypervisorVersionWeigher") \
        == [0, 1]  # fmt: skip


def test_a_host_with_failed_builds_comes_after_all_others() -> None:
    states = [state("bad", free_ram_mb=10**6, failed_builds=1), state("good", free_ram_mb=1, vcpus_used=31)]
    ranking = Ranking(WEIGHERS, request(), states)
    assert ordered([0, 1], ranking.scores([0, 1])[0]) == [1, 0]


def test_a_single_host_is_not_weighed() -> None:
    ranking = Ranking(WEIGHERS, request(), [state("a"), state("b")])
    assert ranking.scores([1])[0].tolist() == [0.0]


@pytest.mark.parametrize(
    ("policy", "expected"),
    [("soft-affinity", [1.0, 0.5, 0.0]), ("soft-anti-affinity", [0.0, 0.5, 1.0]), ("affinity", [0.0, 0.0, 0.0])],
)
def test_soft_policies_count_members(policy: str, expected: list[float]) -> None:
    group = GroupSpec(uuid="g", policy=policy)
    placed = {"a": "two", "b": "two", "c": "one"}
    states = [state("two"), state("one"), state("none")]
    names = ("ServerGroupSoftAffinityWeigher", "ServerGroupSoftAntiAffinityWeigher")
    assert scores(states, *names, group=group, placed=placed) == expected


def test_a_multiplier_is_overridden_by_the_smallest_value_of_the_hosts_aggregates() -> None:
    aggregates = (
        aggregate("x", "a", "b", metadata={"ram_weight_multiplier": "3"}),
        aggregate("y", "a", metadata={"ram_weight_multiplier": "2"}),
        aggregate("z", "d", metadata={"ram_weight_multiplier": "much"}),
    )
    states = [
        state(host, free_ram_mb=8, aggregates=tuple(row for row in aggregates if host in row.hosts)) for host in "abcd"
    ]
    settings = SchedulerSettings(ram_weight_multiplier=0.5)
    assert scores(states, "RAMWeigher", aggregates=aggregates, settings=settings) == [2, 3, 0.5, 0.5]


def test_the_build_failure_multiplier_is_negated_also_where_an_aggregate_sets_it() -> None:
    slow = aggregate("x", "a", metadata={"build_failure_weight_multiplier": "7"})
    states = [state("a", failed_builds=1, aggregates=(slow,)), state("b")]
    assert scores(states, "BuildFailureWeigher", aggregates=(slow,)) == [-7, 0]


@given(
    rams=st.lists(st.integers(0, 5000), min_size=2, max_size=8),
    placements=st.lists(st.tuples(st.integers(0, 7), st.permutations(range(8)), st.integers(2, 8)), max_size=8),
    boosted=st.booleans(),
)
def test_weighing_one_changed_host_again_equals_weighing_all(
    rams: list[int], placements: list[tuple[int, list[int], int]], *, boosted: bool
) -> None:
    rows = (aggregate("fast", "h0", "h1", metadata={"ram_weight_multiplier": "2.5"}),) if boosted else ()
    asked, by_host = request(aggregates=rows), Aggregates(rows).by_host
    states = [state(f"h{n}", free_ram_mb=ram, aggregates=by_host.get(f"h{n}", ())) for n, ram in enumerate(rams)]
    ranking = Ranking(WEIGHERS, asked, states)
    for place, order, most in placements:
        index = place % len(states)
        states[index] = consume(states[index], SMALL)
        ranking.update(asked, index, states[index])
        alive = [number for number in order if number < len(states)][:most]
        found, expected = ranking.scores(alive), Ranking(WEIGHERS, asked, states).scores(alive)
        assert [part.tolist() for part in found] == [part.tolist() for part in expected]


def test_a_weigher_with_nothing_to_say_takes_no_part() -> None:
    silent = Weigher("silent", lambda _request, _states: None, "ram_weight_multiplier")
    ranking = Ranking([silent, registry.WEIGHERS["RAMWeigher"]], request(), [state("a"), state("b")])
    assert [row.name for row in ranking.weighers] == ["RAMWeigher"]


def test_one_host_of_the_subset_is_drawn_and_moved_to_the_front() -> None:
    settings = SchedulerSettings(host_subset_size=3)
    orders = [pick_order([0, 1, 2, 3, 4], np.array([5.0, 4, 3, 2, 1]), settings) for _ in range(200)]
    assert {tuple(order) for order in orders} == {(0, 1, 2, 3, 4), (1, 0, 2, 3, 4), (2, 0, 1, 3, 4)}


def test_a_subset_larger_than_the_hosts_is_all_of_them() -> None:
    assert pick_order([7], np.array([0.0]), SchedulerSettings(host_subset_size=100)) == [7]
    assert pick_order([], np.array([]), SchedulerSettings(host_subset_size=100)) == []


def test_ties_with_the_best_are_shuffled_only_when_asked() -> None:
    tied = np.array([1.0, 3.0, 3.0, 3.0])
    assert {tuple(pick_order([0, 1, 2, 3], tied, SchedulerSettings())) for _ in range(50)} == {(1, 2, 3, 0)}
    settings = SchedulerSettings(shuffle_best_same_weighed_hosts=True)
    found = {tuple(pick_order([0, 1, 2, 3], tied, settings)) for _ in range(300)}
    assert len(found) == 6
    assert all(order[3] == 0 for order in found)
