"""What would be decided and how much fits: nothing is written, and it is what then really happens."""

from __future__ import annotations

from typing import Any

import pytest

from kilonova.bus.calls import MeasureCapacity, SelectDestinations, Simulate
from kilonova.core import ids
from kilonova.core.capacity import Capacity
from kilonova.core.context import Context
from kilonova.core.decision import Decision, Outcome
from kilonova.core.request_spec import GroupSpec, RequestSpec
from kilonova.core.scheduling import NoValidHost
from kilonova.scheduler.service import Scheduler
from kilonova.scheduler.settings import DEFAULT_FILTERS, SchedulerSettings
from tests.scheduler.world import Cloud, spec_of

CONTEXT = Context(overwrite=False)


def scheduler(cloud: Cloud, **options: Any) -> Scheduler:
    return Scheduler(cloud, cloud.placement, SchedulerSettings(**options))


def simulate(made: Scheduler, spec: RequestSpec, count: int = 1) -> Decision:
    return made.simulate(CONTEXT, Simulate(spec, count)).decision


def capacity(made: Scheduler, spec: RequestSpec) -> Capacity:
    return made.capacity(CONTEXT, MeasureCapacity(spec))


def fill(made: Scheduler, spec: RequestSpec) -> int:
    """How many really fit, one after the other."""
    for count in range(1000):
        try:
            made.select_destinations(CONTEXT, SelectDestinations(spec, (ids.new_uuid(),)))
        except NoValidHost:
            return count
    raise AssertionError("it never ends")


def test_a_simulation_claims_nothing_and_the_decision_that_follows_is_the_same(cloud: Cloud) -> None:
    cloud.add_hosts("small", memory_mb=8192)
    cloud.add_hosts("large", memory_mb=32768)
    made = scheduler(cloud)
    thought = simulate(made, spec_of(num_instances=3), 3)
    assert (cloud.placement.puts, cloud.placement.consumers, made.traces.newest()) == (0, {}, [])
    servers = tuple(ids.new_uuid() for _ in range(3))
    made.select_destinations(CONTEXT, SelectDestinations(spec_of(num_instances=3), servers))
    assert list(thought.winners.values()) == list(made.traces.newest()[0].winners.values())
    assert thought.outcome == Outcome.PLACED


def test_several_servers_of_a_simulation_take_room_from_each_other(cloud: Cloud) -> None:
    cloud.add_hosts("a", memory_mb=5000)
    made = scheduler(cloud)
    assert simulate(made, spec_of(), 2).outcome == Outcome.PLACED
    refused = simulate(made, spec_of(), 3)
    assert refused.outcome == Outcome.NO_VALID_HOST
    assert refused.explanation == "2 of 3 servers found a host. Claim: none of 1 host has room for one more."


def test_a_simulation_keeps_a_group_apart_and_forgets_it(cloud: Cloud) -> None:
    cloud.add_hosts("a", "b")
    made = scheduler(cloud)
    spec = spec_of(group=GroupSpec(uuid=ids.new_uuid(), policy="anti-affinity"))
    for _ in range(2):  # the first leaves nothing behind that the second would see
        assert sorted(simulate(made, spec, 2).winners.values()) == ["a", "b"]
    assert "ServerGroupAntiAffinityFilter left none" in simulate(made, spec, 3).explanation


def test_what_hosts_lack_is_told_in_groups_when_placement_has_none(cloud: Cloud) -> None:
    cloud.add_hosts("a", memory_mb=1024)
    cloud.add_hosts("b", memory_mb=2000)
    cloud.add_hosts("off", memory_mb=32768, local_gb=1)
    found = simulate(scheduler(cloud), spec_of())
    assert found.shortage is not None
    texts = {row.text: row.hosts for row in found.shortage.reasons}
    assert texts == {"needs 2048 MB of memory, 1024 to 2000 are free": 2, "needs 20 GB of disk, 1 are free": 1}
    assert found.explanation.endswith("The nearest miss is b: needs 2048 MB of memory, 2000 are free.")


@pytest.mark.parametrize(
    ("options", "limit"),
    [
        ({}, "MEMORY_MB"),
        ({"enabled_filters": (*DEFAULT_FILTERS, "NumInstancesFilter"), "max_instances_per_host": 3},
         "NumInstancesFilter"),
    ],
)  # fmt: skip
def test_the_capacity_is_what_then_really_fits(cloud: Cloud, options: dict[str, Any], limit: str) -> None:
    cloud.add_hosts("a", "b", memory_mb=10_000)
    cloud.add_hosts("c", memory_mb=20_000, local_gb=60)
    made = scheduler(cloud, **options)
    found = capacity(made, spec_of())
    assert cloud.placement.puts == 0
    assert found.limits[0].name == limit
    assert found.fits == fill(made, spec_of()) > 0
    again = capacity(made, spec_of())
    assert (again.fits, again.hosts) == (0, 0)
    assert again.explanation


def test_the_capacity_is_told_by_zone_and_aggregate_with_what_runs_out_first(cloud: Cloud) -> None:
    cloud.add_hosts("a", memory_mb=4096)
    cloud.add_hosts("b", memory_mb=65536, local_gb=60)
    cloud.add_hosts("c", memory_mb=8192)
    cloud.add_aggregate("east", ("a", "b"), availability_zone="east")
    cloud.add_aggregate("ssd", ("b", "c"))
    found = capacity(scheduler(cloud), spec_of())
    assert [(row.name, row.hosts, row.fits, row.runs_out_first) for row in found.zones] == [
        ("east", 2, 5, "MEMORY_MB"), ("nova", 1, 4, "MEMORY_MB"),
    ]  # fmt: skip
    assert [(row.name, row.fits) for row in found.aggregates] == [("east", 5), ("ssd", 7)]
    assert [(row.name, row.hosts) for row in found.limits] == [("MEMORY_MB", 2), ("DISK_GB", 1)]
    east = capacity(scheduler(cloud), spec_of(availability_zone="east"))
    assert (east.fits, [row.name for row in east.zones]) == (5, ["east"])


def test_capacity_of_a_cloud_without_a_host_is_none_with_the_reason(cloud: Cloud) -> None:
    found = capacity(scheduler(cloud), spec_of())
    assert (found.fits, found.hosts) == (0, 0)
    assert "no host has reported itself" in found.explanation
