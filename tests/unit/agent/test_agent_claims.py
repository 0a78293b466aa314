"""What guests have of their host for themselves: claimed once, given back with the guest, refused when it is gone."""

from __future__ import annotations

import dataclasses
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from kilonova.agent.claims import ClaimRefused, Claims
from kilonova.agent.hardware import CpuSetsInvalid, cpu_sets, topology
from kilonova.agent.inventory import CardDivided, host_report, provider
from kilonova.agent.settings import AgentSettings
from kilonova.bus.calls import GuestSpec
from kilonova.core import ids
from kilonova.core.errors import Invalid
from kilonova.core.numa.cpus import members, text
from kilonova.core.numa.wire import read_guest, read_host
from kilonova.core.pci.devices import parse_specs
from kilonova.core.pci.pools import from_text
from kilonova.core.pci.requests import PciRequest
from kilonova.virt.driver import GuestAborted, Usage
from kilonova.virt.simulated import SimulatedDriver, SimulatedSettings, Sizes
from kilonova.virt.simulated_hardware import Hardware, HardwareInvalid

HOST = "sim-0001"
HARDWARE = Hardware(2, 2, 1, ((2048, 512),), (("gpu", 2), ("nic", 1)))
SETTINGS = AgentSettings(
    cpu_shared_set="0,4", cpu_dedicated_set="1-3,5-15",
    reserved_huge_pages=({"node": "1", "size": "2048", "count": "12"},),
    device_spec=parse_specs(('{"vendor_id": "10de"}', '{"vendor_id": "8086"}')),
)  # fmt: skip


def driver_of(directory: Path, hardware: Hardware = HARDWARE) -> SimulatedDriver:
    settings = SimulatedSettings(hosts=2, sizes=Sizes(16, 8192, 100), hardware=hardware)
    return SimulatedDriver(str(directory / "guests.db"), settings=settings)


@pytest.fixture
def driver(tmp_path: Path) -> Iterator[SimulatedDriver]:
    made = driver_of(tmp_path)
    yield made
    made.close()


@pytest.fixture
def claims(driver: SimulatedDriver) -> Claims:
    return Claims(driver, SETTINGS)


def guest(vcpus: int = 2, *, requests: tuple[PciRequest, ...] = (), **specs: str) -> GuestSpec:
    extra = {f"hw:{key}": value for key, value in specs.items()}
    return GuestSpec(
        uuid=ids.new_uuid(), name="g", hostname="g", project_id="p", user_id="u", vcpus=vcpus, memory_mb=512, root_gb=1,
        flavor={"extra_specs": extra}, image={"properties": {}}, pci_requests=requests,
    )  # fmt: skip


def gpu(count: int = 1) -> tuple[PciRequest, ...]:
    return (PciRequest("r", count, ({"vendor_id": "10de", "product_id": "20b5"},), "gpu"),)


def spawn(driver: SimulatedDriver, claims: Claims, wanted: GuestSpec, host: str = HOST) -> GuestSpec:
    with claims.made(host, wanted, {}) as made:
        driver.spawn(host, made, paused=False)
    return made


def pinned(claims: Claims, host: str = HOST) -> list[int]:
    report = claims.left([host])[host].numa_topology
    assert report is not None
    return sorted(cpu for cell in read_host(report).cells for cpu in members(cell.pinned))


def free(claims: Claims) -> dict[str, int]:
    stats = claims.left([HOST])[HOST].pci_stats
    assert stats is not None
    found = Counter[str]()
    for pool in from_text(stats):
        found[pool.product_id] += pool.count
    return dict(found)


def test_guests_get_cpus_and_devices_of_their_own_and_give_them_back(driver: SimulatedDriver, claims: Claims) -> None:
    first, second = (spawn(driver, claims, guest(2, requests=gpu(), cpu_policy="dedicated")) for _ in range(2))
    taken = [{host for _, host in read_guest(made.numa_topology).cells[0].pinning} for made in (first, second)]
    assert not taken[0] & taken[1]
    assert pinned(claims) == sorted(taken[0] | taken[1])
    assert set(first.pci_devices) | set(second.pci_devices) == {"0000:80:00.0", "0000:81:00.0"}
    assert free(claims).get("20b5") is None
    driver.destroy(HOST, first.uuid)
    assert pinned(claims) == sorted(taken[1])
    driver.destroy(HOST, second.uuid)
    assert pinned(claims) == []
    assert free(claims) == {"20b5": 2, "1572": 1, "154c": 4}


def test_a_guest_that_wants_nothing_gets_nothing(driver: SimulatedDriver, claims: Claims) -> None:
    made = spawn(driver, claims, guest())
    assert (made.numa_topology, made.pci_devices) == ("", ())
    assert pinned(claims) == []


def test_a_repeated_spawn_has_what_it_had(driver: SimulatedDriver, claims: Claims) -> None:
    wanted = guest(2, requests=gpu(), cpu_policy="dedicated")
    assert spawn(driver, claims, wanted) == spawn(driver, claims, wanted)
    assert len(pinned(claims)) == 2


def test_what_is_held_survives_the_agent_and_the_driver(tmp_path: Path) -> None:
    first = driver_of(tmp_path)
    made = spawn(first, Claims(first, SETTINGS), guest(2, requests=gpu(), cpu_policy="dedicated"))
    second = driver_of(tmp_path)  # and the first was not closed: it was killed
    claims = Claims(second, SETTINGS)
    assert len(pinned(claims)) == 2
    assert spawn(second, claims, guest(2, requests=gpu())).pci_devices != made.pci_devices


def test_a_claim_that_does_not_fit_is_refused_and_another_host_may_be_tried(
    driver: SimulatedDriver, claims: Claims
) -> None:
    with pytest.raises(ClaimRefused, match="no cell of 2 has 8 dedicated CPUs, most is 7") as caught:
        spawn(driver, claims, guest(8, cpu_policy="dedicated"))
    assert not isinstance(caught.value, GuestAborted | Invalid), "an error of these kinds would end the build"
    with pytest.raises(ClaimRefused, match="it has 2 free devices of gpu, wanted 3"):
        spawn(driver, claims, guest(requests=gpu(3)))
    assert driver.guests(HOST) == []


def test_a_build_that_fails_leaves_nothing_claimed(driver: SimulatedDriver, claims: Claims) -> None:
    with pytest.raises(RuntimeError), claims.made(HOST, guest(7, cpu_policy="dedicated"), {}):
        raise RuntimeError("the hypervisor failed")
    spawn(driver, claims, guest(7, cpu_policy="dedicated"))
    spawn(driver, claims, guest(7, cpu_policy="dedicated"))
    assert len(pinned(claims)) == 14


def test_builds_at_the_same_time_get_different_cpus(driver: SimulatedDriver, claims: Claims) -> None:
    meet, made = threading.Barrier(4), []

    def build() -> None:
        with claims.made(HOST, guest(3, cpu_policy="dedicated"), {}) as one:
            made.append(one)
            meet.wait(10)  # all four are under way, and none is with the driver yet
            driver.spawn(HOST, one, paused=False)

    threads = [threading.Thread(target=build) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    cpus = [host for one in made for _, host in read_guest(one.numa_topology).cells[0].pinning]
    assert len(set(cpus)) == 12 == len(cpus)
    assert pinned(claims) == sorted(cpus)


def test_hosts_do_not_share_what_guests_hold(driver: SimulatedDriver, claims: Claims) -> None:
    spawn(driver, claims, guest(2, cpu_policy="dedicated"))
    assert pinned(claims, "sim-0002") == []


def test_limits_of_the_scheduler_bound_the_claim(claims: Claims) -> None:
    wanted = guest(1, numa_nodes="1")
    with claims.made(HOST, wanted, {"cpu_allocation_ratio": 1.0, "ram_allocation_ratio": 1.0}):
        pass
    tight = {"cpu_allocation_ratio": 1.0, "ram_allocation_ratio": 0.1}
    with pytest.raises(ClaimRefused, match="within the allocation ratio"), claims.made(HOST, wanted, tight):
        pass


# -- the host


def test_a_host_reports_what_its_operator_gives_to_guests(driver: SimulatedDriver) -> None:
    facts = driver.facts(HOST)
    cells = topology(facts, SETTINGS)
    assert cells is not None
    assert [(text(cell.cpuset), text(cell.pcpuset), cell.socket) for cell in cells.cells] == [
        ("0", "1-3,8-11", 0), ("4", "5-7,12-15", 0),
    ]  # fmt: skip
    assert [text(core) for core in cells.cells[0].siblings] == ["0,8", "1,9", "2,10", "3,11"]
    assert [[pages.reserved for pages in cell.pages] for cell in cells.cells] == [[0, 0], [0, 12]]
    made = provider(facts, SETTINGS, frozenset(), disabled=False)
    assert {name: made.inventory[name]["total"] for name in ("VCPU", "PCPU")} == {"VCPU": 2, "PCPU": 14}
    assert made.inventory["PCPU"]["allocation_ratio"] == 1.0
    assert "HW_CPU_HYPERTHREADING" in made.traits
    report = host_report(facts, Usage(), SETTINGS, Claims(driver, SETTINGS).left([HOST])[HOST])
    assert report.numa_topology is not None
    assert len(report.numa_topology) < 700


def test_a_host_without_cells_or_devices_reports_neither(tmp_path: Path) -> None:
    plain = driver_of(tmp_path, Hardware())
    claims = Claims(plain, AgentSettings())
    assert not claims.matters(HOST)
    assert claims.left([HOST]) == {}
    made = provider(plain.facts(HOST), AgentSettings(), frozenset(), disabled=False)
    assert "PCPU" not in made.inventory
    plain.close()


@pytest.mark.parametrize(("shared", "dedicated", "expected"), [
    (None, None, ("0-15", "")), (None, "4-15", ("", "4-15")), ("0-3", "4-15", ("0-3", "4-15")),
    ("^0", None, ("1-15", "")),
])  # fmt: skip
def test_cpu_sets(
    driver: SimulatedDriver, shared: str | None, dedicated: str | None, expected: tuple[str, str]
) -> None:
    settings = AgentSettings(cpu_shared_set=shared, cpu_dedicated_set=dedicated)
    assert tuple(text(mask) for mask in cpu_sets(driver.facts(HOST), settings)) == expected


@pytest.mark.parametrize(("shared", "dedicated"), [("0-4", "4-15"), ("0-3", "4-16")])
def test_cpu_sets_that_do_not_go_together_are_refused(driver: SimulatedDriver, shared: str, dedicated: str) -> None:
    with pytest.raises(CpuSetsInvalid):
        cpu_sets(driver.facts(HOST), AgentSettings(cpu_shared_set=shared, cpu_dedicated_set=dedicated))


def test_a_card_is_reported_to_placement_whole_or_in_functions(driver: SimulatedDriver) -> None:
    facts, reporting = driver.facts(HOST), dataclasses.replace(SETTINGS, report_in_placement=True)
    with pytest.raises(CardDivided, match=r"0000:82:00\.0"):
        provider(facts, reporting, frozenset(), disabled=False)
    specs = parse_specs(['{"product_id": "154c", "resource_class": "vf"}'])
    functions = dataclasses.replace(reporting, device_spec=specs)
    made = provider(facts, functions, frozenset(), disabled=False)
    (card,) = made.children
    assert card.name == "sim-0001_0000:82:00.0"
    assert {name: row["total"] for name, row in card.inventory.items()} == {"CUSTOM_VF": 4}
    assert card.traits == {"OWNER_NOVA", "COMPUTE_MANAGED_PCI_DEVICE"}
    assert made.fingerprint != provider(facts, SETTINGS, frozenset(), disabled=False).fingerprint


@pytest.mark.parametrize("hardware", [
    Hardware(3), Hardware(2, 3), Hardware(32), Hardware(1, 1, 0, ((2048, 10000),)),
])  # fmt: skip
def test_hardware_that_cannot_be_is_refused(tmp_path: Path, hardware: Hardware) -> None:
    with pytest.raises(HardwareInvalid):
        driver_of(tmp_path, hardware)
