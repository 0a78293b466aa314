"""Host states: usage from Placement, claims that rows do not show yet, consumption."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from kilonova.clients.placement import ProviderUsage
from kilonova.core.request_spec import FlavorSpec
from kilonova.scheduler.host_state import Aggregates, Consumed, HostState, Snapshot, consume, names, states_of
from tests.scheduler.states import SMALL, WHEN, aggregate, row, state


def usage(**classes: tuple[int, int]) -> dict[str, Any]:
    return {name: ProviderUsage(capacity, used) for name, (capacity, used) in classes.items()}


def loaded(values: dict[str, Any], used: dict[str, Any] | None = None, consumed: Consumed | None = None) -> HostState:
    host = row("h", **values)
    found = states_of(
        Snapshot({host.uuid: host}, {"agent": WHEN}, Aggregates()),
        {host.uuid: used or {}},
        {host.uuid: consumed} if consumed else {},
        lambda last: last == WHEN,
    )
    return found[0]


def test_free_values_come_from_placement_where_it_reports_the_class() -> None:
    found = loaded(
        {"free_ram_mb": 1, "free_disk_gb": 1, "vcpus_used": 7},
        usage(MEMORY_MB=(16000, 4000), DISK_GB=(100, 40), VCPU=(32, 5)),
    )
    assert (found.free_ram_mb, found.free_disk_mb, found.vcpus_used) == (12000, 60 * 1024, 5)


def test_free_values_come_from_the_row_where_placement_reports_nothing() -> None:
    found = loaded({"free_ram_mb": 700, "free_disk_gb": 9, "vcpus_used": 7})
    assert (found.free_ram_mb, found.free_disk_mb, found.vcpus_used) == (700, 9 * 1024, 7)


def test_over_commitment_is_taken_out_of_the_capacity() -> None:
    found = loaded(
        {"ram_allocation_ratio": 1.5, "disk_allocation_ratio": 2.0}, usage(MEMORY_MB=(15000, 4000), DISK_GB=(200, 30))
    )
    assert (found.free_ram_mb, found.free_disk_mb) == (6000, 70 * 1024)


@pytest.mark.parametrize("used", [{}, usage(DISK_GB=(200, 0))])
def test_disk_is_no_more_than_the_least_that_is_really_available(used: dict[str, Any]) -> None:
    assert loaded({"disk_available_least": 50}, used).free_disk_mb == 50 * 1024


def test_pinned_and_shared_cpus_are_used_alike() -> None:
    assert loaded({}, usage(VCPU=(32, 5), PCPU=(4, 3))).vcpus_used == 8


def test_numbers_of_servers_and_builds_come_from_stats_when_they_are_there() -> None:
    stats = {"num_instances": "4", "io_workload": "2", "failed_builds": "3"}
    found = loaded({"running_vms": 1, "current_workload": 9, "stats": stats})
    assert (found.num_instances, found.num_io_ops, found.failed_builds) == (4, 2, 3)
    found = loaded({"running_vms": 1, "current_workload": 9, "failed_builds": 5})
    assert (found.num_instances, found.num_io_ops, found.failed_builds) == (1, 9, 5)


CLAIMED = Consumed(WHEN).plus(SMALL, WHEN + timedelta(seconds=5))


def test_a_claim_is_added_until_the_row_is_newer() -> None:
    found = loaded({"running_vms": 1, "free_ram_mb": 8192}, consumed=CLAIMED)
    assert (found.num_instances, found.num_io_ops, found.free_ram_mb) == (2, 1, 8192 - SMALL.memory_mb)
    newer = {"running_vms": 2, "free_ram_mb": 6144, "changed_at": WHEN + timedelta(seconds=6)}
    found = loaded(newer, consumed=CLAIMED)
    assert (found.num_instances, found.num_io_ops, found.free_ram_mb) == (2, 0, 6144)


def test_a_claim_is_not_counted_twice_where_placement_has_it_already() -> None:
    found = loaded({}, usage(MEMORY_MB=(16384, 2048), DISK_GB=(200, 20), VCPU=(32, 1)), CLAIMED)
    assert (found.free_ram_mb, found.free_disk_mb, found.vcpus_used) == (16384 - 2048, 180 * 1024, 1)
    assert found.num_instances == 1


@pytest.mark.parametrize(
    ("values", "alive"),
    [
        ({}, True),
        ({"agent": "gone", "last_seen_up": None}, False),
        ({"agent": None, "last_seen_up": WHEN}, True),  # a service that beats on its own row
        ({"agent": None, "last_seen_up": None}, False),
        ({"forced_down": True}, False),
    ],
)
def test_a_host_lives_while_its_agent_beats_and_nobody_forces_it_down(values: dict[str, Any], alive: bool) -> None:
    assert loaded(values).alive is alive


def test_providers_that_are_no_hypervisors_of_ours_have_no_state() -> None:
    snapshot = Snapshot({}, {}, Aggregates())
    assert states_of(snapshot, {"pool": {}}, {}, lambda _last: True) == []


def test_consumption_takes_the_flavor_off_and_may_go_below_zero() -> None:
    flavor = FlavorSpec(id=1, flavorid="1", name="f", memory_mb=3000, vcpus=2, root_gb=10, ephemeral_gb=5, swap=512)
    before = state(free_ram_mb=1000, free_disk_mb=20 * 1024)
    after = consume(before, flavor)
    assert (after.free_ram_mb, after.free_disk_mb, after.vcpus_used) == (-2000, 5 * 1024, 2)
    assert (after.num_instances, after.num_io_ops) == (1, 1)
    assert before == replace(after, free_ram_mb=1000, free_disk_mb=20 * 1024, vcpus_used=0, num_instances=0,
                             num_io_ops=0)  # fmt: skip


def test_a_host_has_its_aggregates_oldest_first_and_those_in_the_same_ones_share_them() -> None:
    rows = (aggregate("1", "a", "b", "c"), aggregate("2", "b"), aggregate("3", "a", "c"))
    by_host = Aggregates(rows).by_host
    assert {host: [row.name for row in found] for host, found in by_host.items()} == {
        "a": ["1", "3"], "b": ["1", "2"], "c": ["1", "3"]
    }  # fmt: skip
    assert by_host["a"] is by_host["c"]


def test_metadata_of_several_aggregates_is_merged() -> None:
    rows = (aggregate("1", "h", metadata={"k": "a, b"}), aggregate("2", "h", metadata={"k": "b,c", "l": "x"}))
    host = state(aggregates=rows)
    assert host.metadata("k") == {"a, b", "b,c"}
    assert host.merged_metadata("k") == {"a", "b", "c"}
    assert host.metadata("none") == set()


def test_a_list_of_hosts_in_a_log_line_is_cut() -> None:
    assert names([state("a"), state("b")]) == "[(a, a.node), (b, b.node)]"
    assert names([state("a"), state("b"), state("c")], limit=1) == "[(a, a.node), … 2 more]"
