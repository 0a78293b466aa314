"""The scheduler against the Placement service itself, through the client and the WSGI application."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kilonova.bus.calls import SelectDestinations
from kilonova.clients.placement import HttpPlacement
from kilonova.core import ids
from kilonova.core.context import Context
from kilonova.core.request_spec import FlavorSpec, GroupSpec, RequestSpec
from kilonova.scheduler.service import Scheduler
from kilonova.scheduler.settings import SchedulerSettings
from tests.scheduler.own_placement import add_host, own_placement
from tests.scheduler.refusals import no_valid_host
from tests.scheduler.world import Cloud, spec_of

CONTEXT = Context(overwrite=False)


@pytest.fixture
def client(tmp_path: Path) -> Iterator[HttpPlacement]:
    with own_placement(tmp_path) as made:
        yield made


def requiring(trait: str) -> FlavorSpec:
    extra_specs = {f"trait:{trait}": "required"}
    return FlavorSpec(id=2, flavorid="2", name="f", memory_mb=512, vcpus=1, root_gb=1, extra_specs=extra_specs)


def ask(cloud: Cloud, client: HttpPlacement, spec: RequestSpec, *servers: str) -> list[list[str]]:
    scheduler = Scheduler(cloud, client, SchedulerSettings())
    found = scheduler.select_destinations(CONTEXT, SelectDestinations(spec, servers))
    return [[row.host for row in rows] for rows in found.selections]


def test_servers_are_placed_and_their_allocations_are_what_was_selected(cloud: Cloud, client: HttpPlacement) -> None:
    uuids = {name: add_host(cloud, client, name) for name in ("a", "b", "c")}
    one, two = ids.new_uuid(), ids.new_uuid()
    found = ask(cloud, client, spec_of(num_instances=2), one, two)
    assert found == [["a", "c"], ["b", "c"]]
    held = client.allocations(one)
    assert held["allocations"][uuids["a"]]["resources"] == {"VCPU": 1, "MEMORY_MB": 2048, "DISK_GB": 20}
    assert (held["project_id"], held["user_id"]) == ("p" * 32, "u" * 32)
    assert list(client.allocations(two)["allocations"]) == [uuids["b"]]


def test_a_request_too_large_in_sum_leaves_nothing_allocated(cloud: Cloud, client: HttpPlacement) -> None:
    uuid = add_host(cloud, client, "a", memory_mb=5000)
    with no_valid_host("^2 of 3 servers found a host. "):
        ask(cloud, client, spec_of(num_instances=3), *(ids.new_uuid() for _ in range(3)))
    assert client.provider_allocations(uuid) == {}


def test_zones_traits_and_forbidden_traits_are_asked_of_placement(cloud: Cloud, client: HttpPlacement) -> None:
    uuids = {name: add_host(cloud, client, name) for name in ("a", "b", "c", "d")}
    for name in ("a", "b", "c"):
        client.set_traits(uuids[name], ["HW_CPU_X86_VMX", "OWNER_NOVA"], client.traits(uuids[name])[1])
    disabled = ["HW_CPU_X86_VMX", "COMPUTE_STATUS_DISABLED", "OWNER_NOVA"]
    client.set_traits(uuids["a"], disabled, client.traits(uuids["a"])[1])
    zone = cloud.add_aggregate("east", ("a", "b", "d"), availability_zone="east")
    for name in ("a", "b", "d"):
        client.set_aggregates(uuids[name], [zone], client.aggregates(uuids[name])[1])
    flavor = requiring("HW_CPU_X86_VMX")
    assert ask(cloud, client, spec_of(flavor, availability_zone="east"), ids.new_uuid()) == [["b"]]


def test_threads_share_a_scheduler_and_a_group_is_placed_one_request_at_a_time(
    cloud: Cloud, client: HttpPlacement
) -> None:
    names = [f"h{number}" for number in range(8)]
    for name in names:
        add_host(cloud, client, name)
    scheduler = Scheduler(cloud, client, SchedulerSettings())
    asked = spec_of(group=GroupSpec(uuid="g" * 36, policy="anti-affinity"))

    def place(_number: int) -> str:
        found = scheduler.select_destinations(CONTEXT, SelectDestinations(asked, (ids.new_uuid(),), alternates=False))
        return found.selections[0][0].host

    with ThreadPoolExecutor(4) as threads:
        assert sorted(threads.map(place, range(8))) == names


def test_a_forced_host_is_asked_for_by_its_tree(cloud: Cloud, client: HttpPlacement) -> None:
    for name in ("a", "b"):
        add_host(cloud, client, name)
    assert ask(cloud, client, spec_of(force_hosts=("b",)), ids.new_uuid()) == [["b"]]


def test_a_query_that_placement_refuses_is_no_valid_host(cloud: Cloud, client: HttpPlacement) -> None:
    add_host(cloud, client, "a")
    flavor = requiring("CUSTOM_NOBODY_MADE")
    with no_valid_host("Placement could not answer the query"):
        ask(cloud, client, spec_of(flavor), ids.new_uuid())
