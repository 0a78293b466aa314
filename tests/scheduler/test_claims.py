"""How hosts are claimed: decisions made at the same moment, several servers by one request, servers that move."""

from __future__ import annotations

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from kilonova.bus.calls import Destinations, SelectDestinations
from kilonova.clients.placement import AllocationRefused, ConsumerConflict
from kilonova.clients.rest import RemoteUnavailable
from kilonova.core import ids
from kilonova.core.context import Context
from kilonova.core.request_spec import Destination, FlavorSpec, GroupSpec, RequestSpec
from kilonova.core.scheduling import NoValidHost
from kilonova.scheduler import pipeline, registry
from kilonova.scheduler.choices import Choices
from kilonova.scheduler.plugins import Filter
from kilonova.scheduler.service import Scheduler
from kilonova.scheduler.settings import SchedulerSettings
from tests.scheduler.world import SMALL, Cloud, spec_of

CONTEXT = Context(overwrite=False)


def scheduler(cloud: Cloud, **options: Any) -> Scheduler:
    return Scheduler(cloud, cloud.placement, SchedulerSettings(**options))


def ask(made: Scheduler, spec: RequestSpec, *servers: str, **more: Any) -> Destinations:
    return made.select_destinations(CONTEXT, SelectDestinations(spec, servers or (ids.new_uuid(),), **more))


def winners(found: Destinations) -> list[str]:
    return [row[0].host for row in found.selections]


def several(number: int) -> tuple[str, ...]:
    return tuple(ids.new_uuid() for _ in range(number))


# -- at the same moment ----------------------------------------------------------------------------------------------


def together(cloud: Cloud, number: int) -> None:
    """Hold every answer of Placement until so many decisions have asked: none sees what another claims."""
    barrier, answer = threading.Barrier(number), cloud.placement.allocation_candidates

    def held(query: str, version: str = "1.36") -> Any:
        found = answer(query, version)
        barrier.wait(30)
        return found

    cloud.placement.allocation_candidates = held  # type: ignore[method-assign]


def test_decisions_made_at_the_same_moment_spread_over_equal_hosts(cloud: Cloud) -> None:
    names = [f"h{number:02}" for number in range(12)]
    cloud.add_hosts(*names)
    made = scheduler(cloud)
    together(cloud, 12)
    with ThreadPoolExecutor(12) as threads:
        found = [host for (host,) in threads.map(lambda _: winners(ask(made, spec_of())), range(12))]
    assert sorted(found) == names
    assert cloud.placement.puts == 12, "nobody was refused"


def test_several_servers_in_each_of_several_decisions_spread_as_well(cloud: Cloud) -> None:
    cloud.add_hosts(*(f"h{number}" for number in range(8)))
    made = scheduler(cloud)
    together(cloud, 4)
    with ThreadPoolExecutor(4) as threads:
        found = threads.map(lambda _: winners(ask(made, spec_of(num_instances=4), *several(4))), range(4))
        assert set(Counter(host for row in found for host in row).values()) == {2}


def test_a_choice_that_was_refused_is_left_to_others(cloud: Cloud) -> None:
    cloud.add_hosts("a", "b")
    choices = Choices()
    with choices.decision() as one, choices.decision() as other:
        with one.turn():
            one.choose("a", SMALL)
        with other.turn() as news:
            assert news == [("a", SMALL, 1)]
        one.take_back()
        with other.turn() as news:
            assert news == [("a", SMALL, -1)]


def _fails_halfway(choices: Choices) -> None:
    with choices.decision() as one:
        with one.turn():
            one.choose("a", SMALL)
        one.claimed()
        with one.turn():
            one.choose("b", SMALL)
        raise RuntimeError


def test_what_a_failed_decision_had_chosen_and_claimed_is_left_to_others() -> None:
    choices = Choices()
    with choices.decision() as other:
        with pytest.raises(RuntimeError):
            _fails_halfway(choices)
        with other.turn() as news:
            assert sorted(provider for provider, _, sign in news if sign > 0) == ["a", "b"]
            assert sorted(provider for provider, _, sign in news if sign < 0) == ["a", "b"]
    assert not choices.running


def test_a_decision_that_begins_later_learns_of_what_is_not_claimed_yet_and_no_more() -> None:
    choices = Choices()
    with choices.decision() as one:
        with one.turn():
            one.choose("claimed", SMALL)
        one.claimed()
        with one.turn():
            one.choose("open", SMALL)
        with choices.decision() as other, other.turn() as news:
            assert news == [("open", SMALL, 1)]


# -- several by one request ------------------------------------------------------------------------------------------


def test_servers_of_one_request_are_claimed_by_one_post(cloud: Cloud) -> None:
    cloud.add_hosts("a", "b", "c")
    mine = several(6)
    found = ask(scheduler(cloud), spec_of(num_instances=6), *mine)
    assert Counter(winners(found)) == {"a": 2, "b": 2, "c": 2}
    assert (cloud.placement.posts, set(cloud.placement.consumers)) == (1, set(mine))


def test_more_servers_than_one_post_takes_are_claimed_by_several(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "TOGETHER", 4)
    cloud.add_hosts("tight", memory_mb=6 * SMALL.memory_mb)
    cloud.add_hosts("wide", memory_mb=10**6, local_gb=10**4)
    mine = several(10)
    made = scheduler(cloud, ram_weight_multiplier=-1.0, weight_classes=("RAMWeigher",))
    found = ask(made, spec_of(num_instances=10), *mine)
    assert Counter(winners(found)) == {"tight": 6, "wide": 4}
    assert (cloud.placement.posts, set(cloud.placement.consumers)) == (3, set(mine)), "no post was refused"


def test_hosts_that_fill_up_within_a_request_are_passed_over_and_the_post_is_not_refused(cloud: Cloud) -> None:
    cloud.add_hosts("tight", memory_mb=3 * SMALL.memory_mb)
    cloud.add_hosts("wide", memory_mb=10**6, local_gb=10**4)
    made = scheduler(cloud, ram_weight_multiplier=-1.0)
    found = ask(made, spec_of(num_instances=8), *several(8))
    assert Counter(winners(found)) == {"tight": 3, "wide": 5}
    assert (cloud.placement.posts, cloud.placement.puts) == (1, 8)


def test_a_refused_post_is_followed_by_single_claims_that_pass_over_the_full_host(cloud: Cloud) -> None:
    cloud.add_hosts("a", "b", "c", memory_mb=4 * SMALL.memory_mb)
    calls: list[str] = []

    def somebody_is_faster(_consumer: str, provider: str) -> None:
        calls.append(provider)
        if len(calls) == 2:
            cloud.provider("b").used["MEMORY_MB"] = 4 * SMALL.memory_mb

    cloud.placement.before_claim = somebody_is_faster
    made, mine = scheduler(cloud), several(4)
    found = ask(made, spec_of(num_instances=4), *mine)
    assert Counter(winners(found)) == {"a": 2, "c": 2}
    assert cloud.placement.posts == 1
    assert set(cloud.placement.consumers) == set(mine)
    assert len(made.traces.newest()[0].attempts) >= 4
    assert list(made.traces.newest()[0].winners) == list(mine)


def test_what_others_chose_during_a_refused_post_counts_once(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    cloud.add_hosts("a", memory_mb=20 * 1024)
    cloud.add_hosts("b", memory_mb=10 * 1024)
    refused: list[int] = []

    def refuse(body: dict[str, Any], version: str = "1.36") -> None:
        refused.append(len(body))
        raise AllocationRefused(consumer="all", reason="somebody was faster")

    cloud.placement.post_allocations = refuse  # type: ignore[method-assign]
    large = FlavorSpec(id=5, flavorid="5", name="large", memory_mb=6 * 1024, vcpus=1, root_gb=1)

    def meanwhile(_request: object) -> None:
        if not refused and not news:
            with made._choices.decision() as other, other.turn():
                other.choose(cloud.uuid_of("a"), large)
                news.append("told")

    news: list[str] = []
    monkeypatch.setattr(registry, "FILTERS", {"Busy": Filter("Busy", meanwhile, once=False)})
    made = scheduler(cloud, enabled_filters=("Busy",), weight_classes=("RAMWeigher",))
    found = ask(made, spec_of(num_instances=2), *several(2))
    assert winners(found) == ["a", "a"]  # 14 and then 12 GiB are free there; counted twice it were 8
    assert refused == [2]


def test_members_of_a_group_are_kept_apart_within_one_post(cloud: Cloud) -> None:
    cloud.add_hosts("a", "b", "c")
    asked = spec_of(num_instances=3, group=GroupSpec(uuid="g" * 36, policy="anti-affinity"))
    assert sorted(winners(ask(scheduler(cloud), asked, *several(3)))) == ["a", "b", "c"]
    assert cloud.placement.posts == 1


def test_a_post_whose_answer_got_lost_leaves_nothing_claimed(cloud: Cloud) -> None:
    cloud.add_hosts("a", "b")
    post = cloud.placement.post_allocations

    def lost(body: dict[str, Any], version: str = "1.36") -> None:
        post(body, version)
        raise RemoteUnavailable(service="placement", reason="timed out")

    cloud.placement.post_allocations = lost  # type: ignore[method-assign]
    with pytest.raises(RemoteUnavailable):
        ask(scheduler(cloud), spec_of(num_instances=2), *several(2))
    assert (cloud.placement.consumers, cloud.placement.used()) == ({}, 0)


def test_a_claim_whose_answer_got_lost_leaves_nothing_claimed(cloud: Cloud) -> None:
    cloud.add_hosts("a")
    claim = cloud.placement.claim

    def lost(*words: Any, **more: Any) -> bool:
        claim(*words, **more)
        raise RemoteUnavailable(service="placement", reason="timed out")

    cloud.placement.claim = lost  # type: ignore[method-assign]
    with pytest.raises(RemoteUnavailable):
        ask(scheduler(cloud), spec_of())
    assert (cloud.placement.consumers, cloud.placement.used()) == ({}, 0)


# -- moves -----------------------------------------------------------------------------------------------------------


def test_an_evacuated_server_keeps_what_it_holds_on_its_source(cloud: Cloud) -> None:
    cloud.add_hosts("source", "other")
    made, server = scheduler(cloud), ids.new_uuid()
    ask(made, spec_of(ignore_hosts=("other",)), server)
    found = ask(made, spec_of(ignore_hosts=("source",)), server, operation="move", alternates=False)
    assert winners(found) == ["other"]
    held = cloud.placement.consumers[server]["allocations"]
    assert set(held) == {cloud.uuid_of("source"), cloud.uuid_of("other")}


def test_a_failed_move_leaves_the_server_what_it_held_before(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    cloud.add_hosts("source", "other")
    made, server = scheduler(cloud), ids.new_uuid()
    ask(made, spec_of(ignore_hosts=("other",)), server)
    held = dict(cloud.placement.consumers[server]["allocations"])
    monkeypatch.setattr(pipeline.Placing, "selections", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        ask(made, spec_of(ignore_hosts=("source",)), server, operation="move")
    assert cloud.placement.consumers[server]["allocations"] == held
    assert cloud.placement.used() == 1


def test_a_server_that_is_built_and_holds_something_is_somebody_elses(cloud: Cloud) -> None:
    cloud.add_hosts("a", "b")
    made, server = scheduler(cloud), ids.new_uuid()
    ask(made, spec_of(), server)
    with pytest.raises(ConsumerConflict):
        ask(made, spec_of(), server)
    assert cloud.placement.used() == 1


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"ignore_hosts": ("a", "B")}, "c"),  # resize, evacuation, live migration: away from source and hosts tried
        ({"requested_destination": Destination(host="B")}, "b"),  # any move to a host that was named
        ({"requested_destination": Destination(node="b.example")}, "b"),
        ({"requested_destination": Destination(host="b", cell="other")}, None),
        ({"requested_destination": Destination(host="b"), "ignore_hosts": ("b",)}, None),
        ({"availability_zone": "west"}, "c"),  # unshelving to a zone
        ({"availability_zone": "west", "requested_destination": Destination(host="a")}, None),
    ],
)
def test_every_kind_of_move_is_a_variant_of_the_request(
    cloud: Cloud, asked: dict[str, Any], expected: str | None
) -> None:
    cloud.add_hosts("a", "b", "c")
    cloud.add_aggregate("west", ("c",), availability_zone="west")
    made = scheduler(cloud)
    if expected is None:
        with pytest.raises(NoValidHost):
            ask(made, spec_of(**asked), operation="move")
        assert cloud.placement.consumers == {}
    else:
        assert winners(ask(made, spec_of(**asked), operation="move")) == [expected]


# -- rebuild ---------------------------------------------------------------------------------------------------------


def rebuilt(cloud: Cloud, properties: dict[str, str], **options: Any) -> Destinations:
    from kilonova.core.request_spec import ImageSpec

    asked = spec_of(image=ImageSpec(id="i", properties=properties), force_hosts=("a",), force_nodes=("a.example",))
    return ask(scheduler(cloud, **options), asked, operation="rebuild", alternates=False)


def test_a_rebuild_asks_only_filters_that_look_at_images_and_claims_nothing(cloud: Cloud) -> None:
    cloud.add_hosts("a", "b")
    cloud.change_service("a", disabled=True)  # a server stays where it is
    cloud.provider("a").used["MEMORY_MB"] = 16384
    assert winners(rebuilt(cloud, {"hw_architecture": "x86_64"})) == ["a"]
    assert (cloud.placement.queries, cloud.placement.puts) == ([], 0)


def test_a_rebuild_with_an_image_that_the_host_cannot_run_is_refused(cloud: Cloud) -> None:
    cloud.add_hosts("a")
    with pytest.raises(NoValidHost):
        rebuilt(cloud, {"hw_architecture": "aarch64"})
    with pytest.raises(NoValidHost):
        rebuilt(cloud, {}, enabled_filters=("IsolatedHostsFilter",), isolated_hosts=("a",))


def test_a_rebuild_on_a_host_that_is_gone_is_refused(cloud: Cloud) -> None:
    with pytest.raises(NoValidHost):
        rebuilt(cloud, {})


# -- groups ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "options", "missing"),
    [
        ("affinity", {"enabled_filters": ("ComputeFilter",)}, "ServerGroupAffinityFilter"),
        ("anti-affinity", {"enabled_filters": ("ComputeFilter",)}, "ServerGroupAntiAffinityFilter"),
        ("soft-affinity", {"weight_classes": ("RAMWeigher",)}, "ServerGroupSoftAffinityWeigher"),
        ("soft-anti-affinity", {"weight_classes": ("RAMWeigher",)}, "ServerGroupSoftAntiAffinityWeigher"),
    ],
)
def test_a_policy_that_nothing_keeps_is_refused(
    cloud: Cloud, policy: str, options: dict[str, Any], missing: str
) -> None:
    cloud.add_hosts("a")
    asked = spec_of(group=GroupSpec(uuid="g" * 36, policy=policy))
    with pytest.raises(NoValidHost, match=missing):
        ask(scheduler(cloud, **options), asked)
    assert cloud.placement.queries == []
    assert winners(ask(scheduler(cloud), asked)) == ["a"]


# -- pinned CPUs -----------------------------------------------------------------------------------------------------

PINNED = FlavorSpec(id=3, flavorid="3", name="pinned", memory_mb=512, vcpus=2, root_gb=1,
                    extra_specs={"hw:cpu_policy": "dedicated"})  # fmt: skip


def test_pinned_cpus_are_looked_for_a_second_time_as_vcpu_after_those_that_report_pcpu(cloud: Cloud) -> None:
    cloud.add_hosts("old", "new", memory_mb=4096)
    cloud.provider("new").capacity = {"PCPU": 8, "MEMORY_MB": 4096, "DISK_GB": 200}
    made = scheduler(cloud, enabled_filters=())
    found = ask(made, spec_of(PINNED), *several(1))
    assert {row.host for row in found.selections[0]} == {"old", "new"}
    assert ["PCPU%3A2" in query for query in cloud.placement.queries] == [True, False]
    cloud.placement.queries.clear()
    ask(scheduler(cloud, enabled_filters=(), disable_fallback_pcpu_query=True), spec_of(PINNED), *several(1))
    assert len(cloud.placement.queries) == 1
