"""Devices offered, aliases asked for, pools that are counted: single rules, and pools against devices themselves."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kilonova.core import host_fit, json
from kilonova.core.host_fit import Fitted, Room, Wanted
from kilonova.core.numa.cpus import of
from kilonova.core.numa.topology import GuestCell, GuestTopology, HostCell, HostTopology
from kilonova.core.pci.devices import DeviceSpecInvalid, Offered, PciDevice, offered, parse_specs
from kilonova.core.pci.pools import Near, NoDevice, families_of, free, from_text, kind_of, pools_of, take, to_text
from kilonova.core.pci.requests import (
    AliasInvalid,
    AliasRequestInvalid,
    AliasUnknown,
    PciRequest,
    of_flavor,
    parse_aliases,
)

GPU = PciDevice("0000:80:00.0", "10de", "20b5")
PF = PciDevice("0000:81:00.0", "8086", "1572", "type-PF", devname="eth0")
VFS = tuple(PciDevice(f"0000:81:02.{n}", "8086", "154c", "type-VF", parent=PF.address) for n in range(3))


Words = dict[str, str]


def request(count: int = 1, policy: Any = None, **spec: Any) -> PciRequest:
    return PciRequest("r", count, (spec,), "some", policy)


# -- what is offered


@pytest.mark.parametrize(("spec", "expected"), [
    ({"vendor_id": "10de"}, [GPU]),
    ({"vendor_id": "*", "product_id": "154c"}, [*VFS]),
    ({"address": "0000:80:00.0"}, [GPU]),
    ({"address": "80:00.0"}, [GPU]),
    ({"address": "*:81:*.*"}, [PF, *VFS]),
    ({"address": "0000:81:00.0"}, [PF, *VFS]),
    ({"address": {"domain": ".*", "bus": "81", "slot": "02", "function": "[0-1]"}}, [*VFS[:2]]),
    ({"devname": "eth0"}, [PF]),
])  # fmt: skip
def test_a_device_spec_offers_devices(spec: dict[str, Any], expected: list[PciDevice]) -> None:
    found = offered([*VFS, PF, GPU], parse_specs([json.dump_str(spec)]))
    assert [row.device for row in found] == expected


def test_the_first_spec_that_names_a_device_gives_it_its_tags() -> None:
    specs = parse_specs(['[{"address": "81:02.1", "physical_network": "a", "trusted": "yes"}, {"vendor_id": "8086"}]'])
    tags = {row.device.address: dict(row.tags) for row in offered([PF, *VFS], specs)}
    assert tags["0000:81:02.1"] == {"physical_network": "a", "trusted": "true"}
    assert tags["0000:81:02.0"] == {}


@pytest.mark.parametrize("text", [
    "nothing", "3", "{}", '{"tag": 1}', '{"vendor_id": "xyz"}', '{"address": "1", "vendor_id": "*"}',
    '{"address": "80:00.0", "devname": "eth0"}', '{"address": {"bus": "("}}',
])  # fmt: skip
def test_a_device_spec_that_cannot_be_read_stops_the_agent(text: str) -> None:
    with pytest.raises(DeviceSpecInvalid):
        parse_specs([text])


# -- what is asked for

ALIASES = parse_aliases((
    '{"name": "gpu", "vendor_id": "10DE", "product_id": "20b5", "numa_policy": "required"}',
    '{"name": "gpu", "vendor_id": "10de", "product_id": "1111", "numa_policy": "required"}',
    '{"name": "vf", "product_id": "154c", "device_type": "type-VF"}',
))  # fmt: skip


def test_a_flavor_asks_by_alias_and_equal_names_are_alternatives() -> None:
    gpu, vf = of_flavor({"pci_passthrough:alias": "gpu:2, vf:1"}, {}, ALIASES)
    assert (gpu.alias, gpu.count, gpu.numa_policy) == ("gpu", 2, "required")
    assert [spec["product_id"] for spec in gpu.specs] == ["20b5", "1111"]
    assert vf.specs == ({"product_id": "154c", "dev_type": "type-VF"},)
    assert gpu.id != vf.id


@pytest.mark.parametrize(("specs", "image", "expected"), [
    ({}, {}, "required"), ({"hw:pci_numa_affinity_policy": "preferred"}, {}, "preferred"),
    ({}, {"hw_pci_numa_affinity_policy": "socket"}, "socket"),
])  # fmt: skip
def test_flavor_and_image_say_how_near_before_the_alias(specs: Words, image: Words, expected: str) -> None:
    (found,) = of_flavor({"pci_passthrough:alias": "gpu:1"} | specs, image, ALIASES)
    assert found.numa_policy == expected


@pytest.mark.parametrize(("specs", "image", "error"), [
    ({"pci_passthrough:alias": "none:1"}, {}, AliasUnknown),
    ({"pci_passthrough:alias": "gpu"}, {}, AliasRequestInvalid),
    ({"pci_passthrough:alias": "gpu:x"}, {}, AliasRequestInvalid),
    ({"hw:pci_numa_affinity_policy": "near"}, {}, AliasRequestInvalid),
    ({"hw:pci_numa_affinity_policy": "legacy"}, {"hw_pci_numa_affinity_policy": "socket"}, AliasRequestInvalid),
])  # fmt: skip
def test_a_request_that_cannot_be_read_is_refused(specs: dict[str, str], image: dict[str, str], error: type) -> None:
    with pytest.raises(error):
        of_flavor(specs, image, ALIASES)


@pytest.mark.parametrize("texts", [
    ["x"], ["[]"], ['{"vendor_id": "10de"}'], ['{"name": "a"}'], ['{"name": "a", "vendor_id": "10d"}'],
    ['{"name": "a", "vendor_id": "10de", "device_type": "card"}'], ['{"name": "a", "vendor_id": "10de", "x": 1}'],
    ['{"name": "a", "vendor_id": "10de", "numa_policy": "near"}'],
    ['{"name": "a", "vendor_id": "10de"}', '{"name": "a", "vendor_id": "10de", "numa_policy": "legacy"}'],
])  # fmt: skip
def test_an_alias_that_cannot_be_read_stops_the_service(texts: list[str]) -> None:
    with pytest.raises(AliasInvalid):
        parse_aliases(texts)


# -- pools


def test_devices_that_are_alike_are_one_pool() -> None:
    pools = pools_of([Offered(row) for row in VFS])
    assert [(pool.product_id, pool.count, pool.family) for pool in pools] == [("154c", 3, None)]
    assert from_text(to_text(pools)) == pools


def test_a_physical_function_and_its_virtual_ones_bar_each_other() -> None:
    devices = [Offered(row) for row in (PF, *VFS)]
    pools = pools_of(devices)
    left = take(pools, [request(dev_type="type-VF")])
    assert not isinstance(left, NoDevice)
    assert [(pool.dev_type, pool.count) for pool in left[0]] == [("type-VF", 2)]
    left = take(pools, [request(dev_type="type-PF")])
    assert not isinstance(left, NoDevice)
    assert left[0] == ()
    assert pools_of(devices, [PF.address]) == ()
    assert [pool.count for pool in pools_of(devices, [VFS[0].address])] == [2]


def test_a_function_of_a_card_in_use_is_taken_before_a_whole_card_is_broken_up() -> None:
    other = PciDevice("0000:82:00.0", "8086", "1572", "type-PF")
    functions = [PciDevice(f"0000:82:02.{n}", "8086", "154c", "type-VF", parent=other.address) for n in range(3)]
    devices = [Offered(row) for row in (PF, *VFS, other, *functions)]
    wanted = [request(2, dev_type="type-VF"), request(dev_type="type-PF")]
    left = take(pools_of(devices, [functions[0].address]), wanted)
    assert not isinstance(left, NoDevice), str(left)


@pytest.mark.parametrize(("device", "spec"), [
    (PF, {"vendor_id": "8086"}), (PciDevice("0000:90:00.0", "8086", "1041", "type-VDPA"), {"vendor_id": "8086"}),
])  # fmt: skip
def test_some_types_are_given_only_when_named(device: PciDevice, spec: dict[str, Any]) -> None:
    pools = pools_of([Offered(device)])
    assert isinstance(take(pools, [request(**spec)]), NoDevice)
    assert not isinstance(take(pools, [request(**spec, dev_type=device.dev_type)]), NoDevice)


@pytest.mark.parametrize(("tags", "spec", "fits"), [
    ({"physical_network": "a"}, {"physical_network": "a"}, True),
    ({"physical_network": "a"}, {"physical_network": "b"}, False),
    ({}, {"physical_network": "a"}, False),
    ({"remote_managed": "true"}, {}, False),
    ({"remote_managed": "true"}, {"remote_managed": "true"}, True),
    ({}, {"remote_managed": "true"}, False),
    ({"live_migratable": "true"}, {"live_migratable": "true"}, True),
    ({}, {"live_migratable": "true"}, False),
    ({"live_migratable": "true"}, {"live_migratable": "false"}, False),
    ({"trusted": "true"}, {"trusted": "true"}, True),
    ({}, {"resource_class": "CUSTOM_GPU", "traits": "A"}, True),
])  # fmt: skip
def test_tags_are_matched(tags: Words, spec: dict[str, Any], fits: bool) -> None:
    found = take(pools_of([Offered(GPU, tags)]), [request(vendor_id="10de", **spec)])
    assert isinstance(found, NoDevice) != fits


@pytest.mark.parametrize(("policy", "node", "fits"), [
    ("required", 0, True), ("required", 1, False), ("required", None, False), (None, None, True), ("legacy", 1, False),
    ("preferred", 1, True), ("socket", 1, True), ("socket", 2, False),
])  # fmt: skip
def test_how_near_a_device_must_be(policy: Any, node: int | None, fits: bool) -> None:
    device = PciDevice("0000:80:00.0", "10de", "20b5", numa_node=node)
    near = Near(frozenset({0}), frozenset({0, 1}))
    found = take(pools_of([Offered(device)]), [request(policy=policy, vendor_id="10de")], near)
    assert isinstance(found, NoDevice) != fits
    assert not isinstance(take(pools_of([Offered(device)]), [request(policy=policy, vendor_id="10de")]), NoDevice)


def test_a_refusal_counts() -> None:
    pools = pools_of([Offered(PciDevice(f"0000:80:00.{n}", "10de", "20b5", numa_node=n % 2)) for n in range(4)])
    assert str(take(pools, [request(5, vendor_id="10de")])) == "it has 4 free devices of some, wanted 5"
    near = Near(frozenset({0}))
    assert str(take(pools, [request(3, "required", vendor_id="10de")], near)) == (
        "2 of its 4 free devices of some are where policy required wants them, wanted 3"
    )


@st.composite
def cards(draw: st.DrawFn) -> list[Offered]:
    found: list[Offered] = []
    for bus in range(draw(st.integers(1, 3))):
        first, node = f"0000:{bus:02x}:00.0", draw(st.sampled_from([None, 0, 1]))
        if draw(st.booleans()):
            found.append(Offered(PciDevice(first, "8086", "1572", "type-PF", node)))
        for n in range(draw(st.integers(0, 3))):
            found.append(Offered(PciDevice(f"0000:{bus:02x}:02.{n}", "8086", "154c", "type-VF", node, first)))
    return found


@given(
    cards(), st.data(), st.sampled_from(["type-PF", "type-VF"]), st.integers(1, 4),
    st.sampled_from([None, "required", "preferred"]),
)  # fmt: skip
def test_pools_have_devices_just_when_the_devices_are_there(
    devices: list[Offered], data: st.DataObject, kind: str, count: int, policy: Any
) -> None:
    taken = data.draw(st.sets(st.sampled_from([row.device.address for row in devices]))) if devices else set()
    near = Near(frozenset({0}))
    found = take(pools_of(devices, taken), [request(count, policy, dev_type=kind)], near)
    nodes = {"required": {0}, "preferred": {0, 1, None}}.get(policy, {0, None})
    possible = any(
        all(row.device.dev_type == kind and row.device.numa_node in nodes for row in chosen)
        for chosen in combinations(free(devices, taken), count)
    )
    assert isinstance(found, NoDevice) != possible
    if not isinstance(found, NoDevice):
        picked = [kind_of(row, families_of(devices)) for row in free(devices, taken)]
        assert all(picked.count(pool) >= number for pool, number in found[1][0])
        assert sum(number for _, number in found[1][0]) == count


# -- cells and devices together


def test_a_guest_goes_to_the_cell_that_has_its_device_and_away_from_it_without() -> None:
    cells = tuple(HostCell(n, 0, of(range(4 * n, 4 * n + 4)), 1024) for n in (0, 1))
    gpus = pools_of([Offered(PciDevice("0000:80:00.0", "10de", "20b5", numa_node=1))])
    room = Room(HostTopology(cells), gpus)
    guest = GuestTopology((GuestCell(0, 0, 3, 512),), "dedicated")
    with_gpu = host_fit.fit(room, Wanted(guest, (request(policy="required", vendor_id="10de"),)))
    without = host_fit.fit(room, Wanted(guest))
    assert isinstance(with_gpu, Fitted)
    assert isinstance(without, Fitted)
    assert with_gpu.topology is not None
    assert without.topology is not None
    assert (with_gpu.topology.cells[0].host_cell, without.topology.cells[0].host_cell) == (1, 0)
    again = host_fit.fit(with_gpu.left, Wanted(guest, (request(policy="required", vendor_id="10de"),)))
    assert str(again) == "it has 0 free devices of some, wanted 1"


@pytest.mark.parametrize(("physnets", "tunneled", "expected"), [
    (frozenset({"b"}), False, 1), (frozenset({"elsewhere"}), False, 0), (frozenset(), True, 1),
    (frozenset({"a", "b"}), False, None),
])  # fmt: skip
def test_a_guest_is_near_the_cards_of_its_networks(
    physnets: frozenset[str], tunneled: bool, expected: int | None
) -> None:
    first = HostCell(0, 0, of(range(4)), 1024, physnets=("a",))
    second = HostCell(1, 0, of(range(4, 8)), 1024, physnets=("b",), tunneled=True)
    guest = GuestTopology((GuestCell(0, 0, 3, 512),), "dedicated")
    found = host_fit.fit(Room(HostTopology((first, second))), Wanted(guest, (), physnets, tunneled))
    where = found.topology.cells[0].host_cell if isinstance(found, Fitted) and found.topology else None
    assert where == expected
