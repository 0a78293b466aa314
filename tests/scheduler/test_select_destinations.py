"""Whole decisions against databases and a Placement that keeps its books: who wins, what is claimed, what is left."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import event

from kilonova.bus.calls import Destinations, HostsChanged, SelectDestinations
from kilonova.clients.placement import ConsumerConflict
from kilonova.core import ids, json
from kilonova.core.context import Context
from kilonova.core.request_spec import Destination, FlavorSpec, GroupSpec, RequestSpec
from kilonova.core.scheduling import NoValidHost
from kilonova.scheduler import host_store, placing
from kilonova.scheduler.service import Scheduler
from kilonova.scheduler.settings import DEFAULT_FILTERS, SchedulerSettings
from tests.scheduler.refusals import no_valid_host
from tests.scheduler.world import CELL, SMALL, Cloud, spec_of

CONTEXT = Context(overwrite=False)


def scheduler(cloud: Cloud, **options: Any) -> Scheduler:
    return Scheduler(cloud, cloud.placement, SchedulerSettings(**options))


def ask(made: Scheduler, spec: RequestSpec, *servers: str, alternates: bool = True) -> Destinations:
    return made.select_destinations(
        CONTEXT, SelectDestinations(spec, servers or (ids.new_uuid(),), alternates)
    )  # fmt: skip


def hosts(found: Destinations) -> list[list[str]]:
    return [[row.host for row in rows] for rows in found.selections]


def test_a_server_gets_a_claimed_host_and_alternates(cloud: Cloud) -> None:
    cloud.add_hosts("small", memory_mb=8192)
    cloud.add_hosts("large", memory_mb=32768)
    cloud.add_hosts("medium", memory_mb=16384)
    server = ids.new_uuid()
    found = ask(scheduler(cloud), spec_of(), server)
    assert hosts(found) == [["large", "medium", "small"]]
    winner = found.selections[0][0]
    assert winner.node == "large.example"
    assert (winner.provider_uuid, winner.cell_uuid) == (cloud.uuid_of("large"), CELL)
    assert (winner.availability_zone, winner.allocation_request_version) == ("nova", "1.36")
    assert json.loads(winner.allocation_request) == cloud.placement.consumers[server]
    assert cloud.provider("large").used == {"DISK_GB": 20, "MEMORY_MB": 2048, "VCPU": 1}
    assert cloud.placement.puts == 1


@pytest.mark.parametrize(("attempts", "alternates", "expected"), [(1, True, 1), (2, True, 2), (9, True, 4),
                                                                  (3, False, 1)])  # fmt: skip
def test_there_are_as_many_alternates_as_attempts_allow(
    cloud: Cloud, attempts: int, alternates: bool, expected: int
) -> None:
    cloud.add_hosts("a", "b", "c", "d")
    found = ask(scheduler(cloud, max_attempts=attempts), spec_of(), alternates=alternates)
    assert len(found.selections[0]) == expected


def test_what_is_claimed_for_a_server_that_is_gone_is_given_back(cloud: Cloud) -> None:
    cloud.add_hosts("a")
    asked, there, gone = [], ids.new_uuid(), ids.new_uuid()

    def unwanted(servers: Sequence[str]) -> list[str]:
        asked.append((list(servers), set(cloud.placement.consumers)))
        return [gone]

    made = Scheduler(cloud, cloud.placement, SchedulerSettings(), unwanted)
    ask(made, spec_of(num_instances=2), there, gone)
    assert asked == [([there, gone], {there, gone})], "asked once, after the claims"
    assert set(cloud.placement.consumers) == {there}


def test_requests_one_after_the_other_spread(cloud: Cloud) -> None:
    cloud.add_hosts("a", "b", "c")
    made = scheduler(cloud)
    winners = [hosts(ask(made, spec_of()))[0][0] for _ in range(6)]
    assert sorted(winners) == ["a", "a", "b", "b", "c", "c"]


def test_several_servers_see_each_other_and_alternates_are_no_winners(cloud: Cloud) -> None:
    cloud.add_hosts("a", "b", "c", "d", "e")
    found = hosts(ask(scheduler(cloud), spec_of(num_instances=3), *(ids.new_uuid() for _ in range(3))))
    winners = [row[0] for row in found]
    assert sorted(winners) == ["a", "b", "c"]
    assert [sorted(row[1:]) for row in found] == [["d", "e"]] * 3


def test_without_room_for_all_none_stays_claimed(cloud: Cloud) -> None:
    cloud.add_hosts("a", memory_mb=5000)
    made = scheduler(cloud)
    with no_valid_host("^2 of 3 servers found a host. "):
        ask(made, spec_of(num_instances=3), *(ids.new_uuid() for _ in range(3)))
    assert (cloud.placement.consumers, cloud.placement.used()) == ({}, 0)
    assert hosts(ask(made, spec_of(num_instances=2), ids.new_uuid(), ids.new_uuid())) == [["a"], ["a"]]


def test_a_conflict_over_a_consumer_gives_back_the_others_and_touches_not_its_own(cloud: Cloud) -> None:
    cloud.add_hosts("a", "b")
    made = scheduler(cloud)
    taken = ids.new_uuid()
    ask(made, spec_of(), taken)
    held = dict(cloud.placement.consumers)
    with pytest.raises(ConsumerConflict):
        ask(made, spec_of(num_instances=3), ids.new_uuid(), ids.new_uuid(), taken)
    assert cloud.placement.consumers == held
    assert cloud.placement.used() == 1


def test_a_host_taken_in_the_meantime_is_passed_over_for_the_next(cloud: Cloud) -> None:
    cloud.add_hosts("first", memory_mb=4096)
    cloud.add_hosts("second", memory_mb=2048)

    def somebody_is_faster(_consumer: str, provider: str) -> None:
        if provider == cloud.uuid_of("first"):
            cloud.placement.providers[provider].used["MEMORY_MB"] = 4096

    cloud.placement.before_claim = somebody_is_faster
    made = scheduler(cloud)
    assert hosts(ask(made, spec_of())) == [["second", "first"]]
    assert [(row.host, row.taken) for row in made.traces.newest()[0].attempts] == [("first", False), ("second", True)]


def test_when_every_host_is_taken_in_the_meantime_it_is_said(cloud: Cloud) -> None:
    cloud.add_hosts("a", memory_mb=2048)
    cloud.placement.before_claim = lambda _c, provider: cloud.placement.providers[provider].used.update(MEMORY_MB=2048)
    with no_valid_host("^Claim: .* taken by somebody else"):
        ask(scheduler(cloud), spec_of())


def test_a_refused_host_is_tried_last_for_the_next_equal_servers(cloud: Cloud) -> None:
    cloud.add_hosts("full", memory_mb=64 * 1024)
    cloud.add_hosts("free", memory_mb=32 * 1024)
    cloud.placement.before_claim = lambda _c, provider: (
        cloud.placement.providers[provider].capacity.update(VCPU=0) if provider == cloud.uuid_of("full") else None
    )
    made = scheduler(cloud)
    found = hosts(ask(made, spec_of(num_instances=4), *(ids.new_uuid() for _ in range(4))))
    assert [row[0] for row in found] == ["free"] * 4
    assert cloud.placement.puts == 6  # once in the request for all four, once alone, then never again


def test_nothing_fits_is_said_in_the_words_operators_know(cloud: Cloud, caplog: pytest.LogCaptureFixture) -> None:
    cloud.add_hosts("a")
    huge = FlavorSpec(id=9, flavorid="9", name="huge", memory_mb=10**6, vcpus=1, root_gb=1)
    with caplog.at_level(logging.INFO), no_valid_host("^Candidates: .* needs .* MB of memory, 16384 are free"):
        ask(scheduler(cloud), spec_of(huge))
    assert any("no allocation candidates from the Placement API" in line.getMessage() for line in caplog.records)


def test_a_zone_is_asked_of_placement_and_named_in_the_selection(cloud: Cloud) -> None:
    cloud.add_hosts("a", "b")
    made = scheduler(cloud)
    ask(made, spec_of())
    uuid = cloud.add_aggregate("east", ("b",), availability_zone="east")
    found = ask(made, spec_of(availability_zone="east"))
    assert hosts(found) == [["b"]]
    assert found.selections[0][0].availability_zone == "east"
    assert f"member_of=in%3A{uuid}" in cloud.placement.queries[-1]


def test_disabled_hosts_are_left_out_by_placement(cloud: Cloud) -> None:
    cloud.add_hosts("a", "b")
    cloud.provider("a").traits.add("COMPUTE_STATUS_DISABLED")
    assert hosts(ask(scheduler(cloud), spec_of())) == [["b"]]


def test_a_host_disabled_a_moment_ago_is_left_out_once_the_scheduler_is_told(cloud: Cloud) -> None:
    cloud.add_hosts("a", "b")
    made = scheduler(cloud)
    ask(made, spec_of())
    cloud.change_service("a", disabled=True)
    made.hosts_changed(CONTEXT, HostsChanged(("a",)))
    assert hosts(ask(made, spec_of())) == [["b"]]
    cloud.change_service("b", disabled=True, disabled_reason="fire")
    made.hosts_changed(CONTEXT, HostsChanged())
    with no_valid_host("^Filters: ComputeFilter left none of 2 hosts. .*fire"):
        ask(made, spec_of())
    assert made.traces.newest()[0].failure.startswith("No valid host was found.")


@pytest.mark.parametrize("wanted", [{"force_hosts": ("B",)}, {"force_nodes": ("b.example",)}])
def test_a_forced_host_is_taken_without_asking_filters(cloud: Cloud, wanted: dict[str, Any]) -> None:
    cloud.add_hosts("a", "b")
    cloud.change_service("b", disabled=True)
    made = scheduler(cloud)
    assert hosts(ask(made, spec_of(**wanted))) == [["b"]]
    assert f"in_tree={cloud.uuid_of('b')}" in cloud.placement.queries[-1]


def test_a_requested_host_must_pass_the_filters(cloud: Cloud) -> None:
    cloud.add_hosts("a", "b")
    made = scheduler(cloud)
    asked = spec_of(requested_destination=Destination(host="b"))
    assert hosts(ask(made, asked)) == [["b"]]
    cloud.change_service("b", disabled=True)
    made.hosts_changed(CONTEXT, HostsChanged(("b",)))
    with no_valid_host("ComputeFilter left none of 1 host\\. "):
        ask(made, asked)


def test_a_host_nobody_knows_is_not_found_and_placement_is_not_asked(cloud: Cloud) -> None:
    cloud.add_hosts("a")
    with pytest.raises(NoValidHost, match="No such host - host: nosuch node: None"):
        ask(scheduler(cloud), spec_of(force_hosts=("nosuch",)))
    assert cloud.placement.queries == []


def test_a_forced_host_that_has_just_come_is_found(cloud: Cloud) -> None:
    cloud.add_hosts("a")
    made = scheduler(cloud)
    ask(made, spec_of())
    cloud.add_hosts("new")
    assert hosts(ask(made, spec_of(force_hosts=("new",)))) == [["new"]]


def test_ignored_hosts_and_destination_aggregates_are_kept_to(cloud: Cloud) -> None:
    cloud.add_hosts("a", "b", "c")
    fast, slow = cloud.add_aggregate("fast", ("a", "b")), cloud.add_aggregate("slow", ("a",))
    made = scheduler(cloud)
    assert hosts(ask(made, spec_of(ignore_hosts=("a", "b")))) == [["c"]]
    asked = spec_of(requested_destination=Destination(aggregates=((fast,),), forbidden_aggregates=(slow,)))
    assert hosts(ask(made, asked)) == [["b"]]


def test_a_destination_cell_holds_unless_cells_may_be_crossed(cloud: Cloud) -> None:
    cloud.add_hosts("a")
    made = scheduler(cloud)
    with pytest.raises(NoValidHost):
        ask(made, spec_of(requested_destination=Destination(cell=ids.new_uuid())))
    asked = spec_of(requested_destination=Destination(cell=ids.new_uuid(), allow_cross_cell_move=True))
    assert hosts(ask(made, asked)) == [["a"]]


def grouped(policy: str, **values: Any) -> RequestSpec:
    return spec_of(group=GroupSpec(uuid="g" * 36, policy=policy), **values)


def test_anti_affinity_holds_within_and_between_requests(cloud: Cloud) -> None:
    cloud.add_hosts("a", "b", "c")
    made = scheduler(cloud)
    found = hosts(ask(made, grouped("anti-affinity", num_instances=2), ids.new_uuid(), ids.new_uuid()))
    winners = {row[0] for row in found}
    assert len(winners) == 2
    third = hosts(ask(made, grouped("anti-affinity")))
    assert {third[0][0]} == {"a", "b", "c"} - winners
    with no_valid_host("ServerGroupAntiAffinityFilter left none of 3 hosts"):
        ask(made, grouped("anti-affinity"))


def test_affinity_keeps_all_servers_of_a_request_together(cloud: Cloud) -> None:
    cloud.add_hosts("a", "b", "c")
    made = scheduler(cloud)
    found = hosts(ask(made, grouped("affinity", num_instances=3), *(ids.new_uuid() for _ in range(3))))
    assert len({row[0] for row in found}) == 1
    assert [row[1:] for row in found] == [[]] * 3  # no alternate could hold to the policy
    assert hosts(ask(made, grouped("affinity")))[0][0] == found[0][0]


def test_a_grouped_request_is_never_cut_by_the_limit(cloud: Cloud) -> None:
    cloud.add_hosts("a", "b", "c")
    made = scheduler(cloud, max_placement_results=2)
    ask(made, spec_of())
    assert "limit=2" in cloud.placement.queries[-1]
    ask(made, grouped("affinity"))
    ask(made, spec_of(scheduler_hints={"same_host": [ids.new_uuid()]}))
    assert not any("limit=" in query for query in cloud.placement.queries[-2:])


def test_hosts_that_placement_knows_and_we_do_not_are_looked_for_at_once_and_then_not_at_each_request(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    cloud.add_hosts("a")
    made = scheduler(cloud)
    ask(made, spec_of())
    cloud.add_hosts("huge", memory_mb=10**6)
    assert hosts(ask(made, spec_of()))[0][0] == "huge"
    stranger = cloud.provider("a")
    cloud.placement.providers["stranger"] = type(stranger)("stranger", dict(stranger.capacity))
    monkeypatch.setattr(host_store, "CHECK_EVERY", 3600)
    ask(made, spec_of())
    reads: list[str] = []
    monkeypatch.setattr(host_store.queries, "host_mark", lambda _database: reads.append("mark"))
    assert hosts(ask(made, spec_of()))[0][0] == "huge"
    assert reads == []


def test_a_cell_that_cannot_be_read_gives_no_hosts_and_is_warned_of(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    cloud.add_hosts("a")
    monkeypatch.setattr(cloud, "database", lambda _name: None)
    with no_valid_host("no compute service is known"):
        ask(scheduler(cloud), spec_of())
    assert any(f"Failed to get the computes of cell {CELL}" in line.getMessage() for line in caplog.records)


def test_no_servers_are_no_selections(cloud: Cloud) -> None:
    found = scheduler(cloud).select_destinations(CONTEXT, SelectDestinations(spec_of(), ()))
    assert found == Destinations(())
    assert cloud.placement.queries == []


def test_a_host_with_odd_documents_is_a_host_like_others(cloud: Cloud) -> None:
    cloud.add_hosts("odd", stats='["list"]', cpu_info="{", supported_instances='[3, ["a", "b"]]')
    cloud.add_hosts("odder", stats='{"num_instances": "many", "io_workload": null}', supported_instances="7")
    assert hosts(ask(scheduler(cloud), spec_of())) == [["odd", "odder"]]


def test_the_trace_tells_what_was_decided_and_why(cloud: Cloud) -> None:
    cloud.add_hosts("off", "a", "b")
    cloud.change_service("off", disabled=True)
    made = scheduler(cloud)
    server = ids.new_uuid()
    ask(made, spec_of(), server)
    trace = made.traces.of(server)
    assert trace is not None
    assert trace.hosts == ("off", "a", "b")
    assert list(trace.dropped_by) == [1, 0, 0]
    assert (trace.winners, trace.alternates) == ({server: "a"}, ("b",))
    assert [name for name, _ in trace.additions] == ["compute_status_filter", "owner_nova_filter"]
    assert list(trace.seconds) == ["request", "request filters", "candidates", "host states", "filters", "weighers",
                                   "claim", "alternates"]  # fmt: skip
    assert "ComputeFilter: 3 → 2; off: its compute service is disabled (no reason given)" in str(trace)


def test_a_decision_in_a_quiet_cloud_is_one_statement_whatever_the_number_of_servers(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host_store, "CHECK_EVERY", 3600)
    cloud.add_hosts(*(f"h{number}" for number in range(20)))
    made = scheduler(cloud)
    ask(made, spec_of())
    statements: list[str] = []
    for database in (cloud.api, cloud.cell):
        for engine in (database._reader, database._writer):
            event.listen(engine, "before_cursor_execute", lambda _c, _cursor, text, *_: statements.append(text))
    ask(made, spec_of(num_instances=10), *(ids.new_uuid() for _ in range(10)))
    assert len(statements) == 1
    assert len(cloud.placement.queries) == 2


def test_a_decision_formats_nothing_for_levels_that_are_off(cloud: Cloud, caplog: pytest.LogCaptureFixture) -> None:
    cloud.add_hosts("a", "b")
    made = scheduler(cloud)
    with caplog.at_level(logging.INFO):
        ask(made, spec_of())
        words = [line.getMessage().split()[0] for line in caplog.records]
        assert words == ["[instance:"] * len(DEFAULT_FILTERS) + ["Server"]  # what each filter left, and where it goes
    with caplog.at_level(logging.DEBUG):
        ask(made, spec_of())
    text = "\n".join(line.getMessage() for line in caplog.records)
    for words in ("Starting to schedule for instances", "request filter compute_status_filter added", "took",
                  "Filter ComputeFilter returned 2 hosts [a, b]", "Filtered [", "Weighed [", "WeighedHost",
                  "Attempting to claim resources", "Selected host: ("):  # fmt: skip
        assert words in text


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rams=st.lists(st.integers(1, 6), min_size=1, max_size=6),
    wanted=st.integers(1, 12),
    racers=st.sets(st.integers(1, 12), max_size=4),
)
def test_all_or_none_is_claimed_whoever_else_claims(
    tmp_path_factory: pytest.TempPathFactory, rams: list[int], wanted: int, racers: set[int]
) -> None:
    cloud = Cloud(tmp_path_factory.mktemp("cloud"))
    for number, ram in enumerate(rams):
        cloud.add_hosts(f"h{number}", memory_mb=ram * SMALL.memory_mb)
    mine = [ids.new_uuid() for _ in range(wanted)]
    claims = 0

    def race(_consumer: str, provider: str) -> None:
        nonlocal claims
        claims += 1
        row = cloud.placement.providers[provider]
        if claims in racers and row.capacity["MEMORY_MB"] - row.used.get("MEMORY_MB", 0) >= SMALL.memory_mb:
            row.used["MEMORY_MB"] = row.used.get("MEMORY_MB", 0) + SMALL.memory_mb

    cloud.placement.before_claim = race
    try:
        found = ask(scheduler(cloud), spec_of(num_instances=wanted), *mine)
    except NoValidHost:
        assert cloud.placement.consumers == {}
        assert wanted > sum(rams) - len(racers)
    else:
        assert set(cloud.placement.consumers) == set(mine)
        winners = {rows[0].host for rows in found.selections}
        for server, rows in zip(mine, found.selections, strict=True):
            assert json.loads(rows[0].allocation_request) == cloud.placement.consumers[server]
            assert not winners & {row.host for row in rows[1:]}
            assert len(rows) <= 3
    finally:
        cloud.close()


def test_a_failure_after_the_claims_gives_them_back(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    cloud.add_hosts("a", "b")
    made = scheduler(cloud)

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr(placing.Placing, "selections", broken)
    with pytest.raises(RuntimeError, match="broken"):
        ask(made, spec_of(num_instances=2), ids.new_uuid(), ids.new_uuid())
    assert cloud.placement.consumers == {}
    assert made.traces.newest()[0].failure == "broken"
