"""NUMATopologyFilter, PciPassthroughFilter and PCIWeigher: verdicts in tables, reasons with numbers, consumption."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from kilonova.core.host_fit import Wanted
from kilonova.core.numa.cpus import of
from kilonova.core.numa.topology import HostCell, HostTopology, Pages
from kilonova.core.numa.wire import host_text
from kilonova.core.pci.devices import Offered, PciDevice
from kilonova.core.pci.pools import pools_of, to_text
from kilonova.core.pci.requests import PciRequest
from kilonova.core.request_spec import FlavorSpec
from kilonova.scheduler.filters import numa_topology_filter, pci_passthrough_filter
from kilonova.scheduler.host_state import Aggregates, Consumed, HostState, Snapshot, consume, states_of
from kilonova.scheduler.topology import limits_for, wanted_by
from kilonova.scheduler.verdict import PASS, Verdict
from kilonova.scheduler.weighers import pci
from tests.scheduler.states import WHEN, request, row, state

CELLS = tuple(
    HostCell(
        number, of(range(8 * number, 8 * number + 2)), of(range(8 * number + 2, 8 * number + 8)), 4096,
        pages=(Pages(4, 524288), Pages(2048, 1024)), socket=number,
    )
    for number in (0, 1)
)  # fmt: skip
BUSY = replace(CELLS[0], pinned=of([2, 3, 4, 5])), replace(CELLS[1], pinned=of([10, 11, 12, 13, 14]))
GPUS = pools_of([Offered(PciDevice(f"0000:8{n}:00.0", "10de", "20b5", numa_node=n)) for n in (0, 1)])


def host(cells: tuple[HostCell, ...] = CELLS, pools: Any = (), **values: Any) -> HostState:
    topology = host_text(HostTopology(cells)) if cells else None
    return state(numa_topology=topology, pci_stats=to_text(pools) if pools else None, **values)


def flavor(vcpus: int = 2, memory_mb: int = 1024, **specs: str) -> FlavorSpec:
    named = {f"hw:{key}": value for key, value in specs.items()}
    return FlavorSpec(id=1, flavorid="1", name="f", memory_mb=memory_mb, vcpus=vcpus, root_gb=1, extra_specs=named)


def gpus(count: int = 1, policy: Any = None) -> tuple[PciRequest, ...]:
    return (PciRequest("r", count, ({"vendor_id": "10de", "product_id": "20b5"},), "gpu", policy),)


def numa(there: HostState, asked: FlavorSpec, **spec: Any) -> Verdict | None:
    """The verdict of NUMATopologyFilter; None when it has nothing to say of the request."""
    check = numa_topology_filter.FILTER.prepare(request(flavor=asked, **spec))
    return None if check is None else check(there)


@pytest.mark.parametrize(("asked", "there", "reason"), [
    (flavor(), host(()), None),
    (flavor(cpu_policy="dedicated"), host(()), "it reports no NUMA topology, and the guest has one of 1 cells"),
    (flavor(cpu_policy="dedicated"), host(), ""),
    (flavor(4, cpu_policy="dedicated"), host(BUSY), "no cell of 2 has 4 free dedicated CPUs, most is 2"),
    (flavor(2, cpu_policy="dedicated"), host(BUSY), ""),
    (flavor(7, cpu_policy="dedicated"), host(), "no cell of 2 has 7 dedicated CPUs, most is 6"),
    (flavor(2, cpu_policy="dedicated", cpu_thread_policy="require"), host(),
     "the guest requires threads of one core, and the host's cores have one thread each"),
    (flavor(8, cpu_policy="dedicated", numa_nodes="2"), host(), ""),
    (flavor(3, 3072, numa_nodes="3"), host(), "the guest has 3 NUMA cells, the host 2"),
    (flavor(1, 2048, mem_page_size="large"), host(), ""),
    (flavor(1, 3072, mem_page_size="large"), host(), "no cell of 2 has 3072 MiB free in large pages, most is 2048"),
    (flavor(3, numa_nodes="1"), host(), "no cell of 2 has 3 shared CPUs, most is 2"),
    (flavor(1, 8192, numa_nodes="1"), host(), "no cell of 2 has 8192 MiB of memory, most is 4096"),
])  # fmt: skip
def test_numa_topology_filter(asked: FlavorSpec, there: HostState, reason: str | None) -> None:
    verdict = numa(there, asked)
    assert (None if verdict is None else str(verdict) if not verdict.passed else "") == reason


def test_what_came_of_a_host_is_said_only_of_those_that_report_the_same() -> None:
    asked = flavor(4, cpu_policy="dedicated")
    check = numa_topology_filter.FILTER.prepare(request(flavor=asked))
    assert check is not None
    free, busy, wanted = host(), host(BUSY), wanted_by(request(flavor=asked).spec)
    half = consume(free, asked, wanted)
    full = consume(half, asked, wanted)
    for _ in range(2):
        passed = [check(there).passed for there in (free, busy, host(), half, full, host(()))]
        assert passed == [True, False, True, True, False, False]
    assert numa(busy, flavor(2, cpu_policy="dedicated")) == PASS


def test_over_commitment_is_bounded_by_the_ratios_of_the_host() -> None:
    full = tuple(replace(cell, cpu_usage=6, memory_usage=4000) for cell in CELLS)
    asked = flavor(2, 512, numa_nodes="1")
    assert str(numa(host(full), asked)) == (
        "no cell of 2 has 512 MiB of memory left within the allocation ratio, most is 96"
    )
    passed = numa(host(full, ram_allocation_ratio=1.5), asked)
    assert passed is not None
    assert passed.passed
    assert "shared CPUs left" in str(numa(host(full, ram_allocation_ratio=1.5, cpu_allocation_ratio=3.0), asked))


@pytest.mark.parametrize(("policy", "cells", "fits"), [
    ("required", CELLS, True), ("required", BUSY, False), ("preferred", BUSY, True), ("legacy", BUSY, False),
])  # fmt: skip
def test_devices_are_near_the_cells_as_their_policy_says(policy: Any, cells: Any, fits: bool) -> None:
    pool = pools_of([Offered(PciDevice("0000:81:00.0", "10de", "20b5", numa_node=1))])
    verdict = numa(host(cells, pool), flavor(2, cpu_policy="dedicated"), pci_requests=gpus(1, policy))
    assert verdict is not None
    assert verdict.passed == fits, str(verdict)


@pytest.mark.parametrize(("pools", "count", "reason"), [
    ((), 1, "it has no free PCI device"), (GPUS, 2, ""), (GPUS, 3, "it has 2 free devices of gpu, wanted 3"),
])  # fmt: skip
def test_pci_passthrough_filter(pools: Any, count: int, reason: str) -> None:
    check = pci_passthrough_filter.FILTER.prepare(request(pci_requests=gpus(count)))
    assert check is not None
    verdict = check(host((), pools))
    assert ("" if verdict.passed else str(verdict)) == reason


def test_a_request_without_devices_passes_every_host() -> None:
    assert pci_passthrough_filter.FILTER.prepare(request()) is None


def test_the_weigher_keeps_devices_for_those_who_want_them() -> None:
    many = pools_of([Offered(PciDevice(f"0000:{n:02x}:00.0", "10de", "20b5")) for n in range(120)])
    assert pci.WEIGHER.weigh(request(), [host(()), host((), GPUS), host((), many)]) == [100, 98, 1]


def test_a_server_placed_takes_its_cpus_pages_and_devices_from_the_next() -> None:
    asked = flavor(4, 1024, cpu_policy="dedicated", mem_page_size="large")
    wanted = wanted_by(request(flavor=asked, pci_requests=gpus()).spec)
    there = host(pools=GPUS)
    for left, free in ((1, 8), (0, 4)):
        there = consume(there, asked, wanted)
        assert there.room.topology is not None
        assert sum(pool.count for pool in there.room.pools) == left
        assert sum(cell.free_pcpus.bit_count() for cell in there.room.topology.cells) == free
    assert str(numa(there, asked)) == "no cell of 2 has 4 free dedicated CPUs, most is 2"
    assert there.num_instances == 2


def test_what_was_claimed_counts_until_the_row_shows_it() -> None:
    asked = flavor(6, 1024, cpu_policy="dedicated")
    known = row(numa_topology=host_text(HostTopology(CELLS)))
    snapshot = Snapshot({known.uuid: known}, {}, Aggregates())
    claimed = Consumed(WHEN).plus(asked, WHEN, wanted_by(request(flavor=asked).spec))
    for at, free in ((WHEN, 6), (WHEN - timedelta(seconds=1), 12)):
        consumed = {known.uuid: replace(claimed, at=at)}
        (there,) = states_of(snapshot, {known.uuid: {}}, consumed, lambda _seen: True)
        assert there.room.topology is not None
        assert sum(cell.free_pcpus.bit_count() for cell in there.room.topology.cells) == free


def test_a_host_without_topology_costs_nothing_and_one_is_read_when_asked_for() -> None:
    assert host(()).room is host(()).room
    assert host().left is None


def test_the_agent_is_told_the_ratios_of_a_guest_with_a_topology() -> None:
    asked = wanted_by(request(flavor=flavor(cpu_policy="dedicated")).spec)
    assert limits_for(host(), asked) == {"cpu_allocation_ratio": 4.0, "ram_allocation_ratio": 1.0}
    assert limits_for(host(), Wanted()) == {}
