"""The default filters, as tables of what passes and what does not."""

from __future__ import annotations

import logging
from datetime import datetime
from typing import Any

import pytest

from kilonova.core.request_spec import GroupSpec
from kilonova.scheduler import attributes
from kilonova.scheduler.filters import (
    affinity_filter,
    anti_affinity_filter,
    capabilities_filter,
    compute_filter,
    image_properties_filter,
)
from kilonova.scheduler.host_state import HostState
from kilonova.scheduler.plugins import Filter
from kilonova.scheduler.request import Request
from kilonova.scheduler.settings import SchedulerSettings
from kilonova.scheduler.verdict import PASS, Verdict
from tests.scheduler.states import aggregate, request, state


def verdict(row: Filter, asked: Request, host: HostState) -> Verdict:
    check = row.prepare(asked)
    return PASS if check is None else check(host)


@pytest.mark.parametrize(
    ("host", "reason"),
    [
        ({}, ""),
        ({"service_disabled": True}, "disabled (no reason given)"),
        ({"service_disabled": True, "service_disabled_reason": "broken fan"}, "broken fan"),
        ({"alive": False, "last_seen_up": datetime(2026, 5, 1)}, "last heard from at 2026-05-01"),
        ({"alive": False, "forced_down": True}, "forced down"),
    ],
)
def test_a_host_passes_when_its_service_is_enabled_and_up(host: dict[str, Any], reason: str) -> None:
    found = verdict(compute_filter.FILTER, request(), state(**host))
    assert found.passed is not bool(reason)
    assert reason in str(found)


def test_a_silent_host_is_warned_of_and_a_disabled_one_is_not(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        verdict(compute_filter.FILTER, request(), state("silent", alive=False))
        verdict(compute_filter.FILTER, request(), state("off", service_disabled=True))
    assert [(row.levelname, row.args[0]) for row in caplog.records if row.args] == [
        ("WARNING", "silent"), ("DEBUG", "off")
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("extra_specs", "passes"),
    [
        ({}, True),
        ({"capabilities:vcpus_total": ">= 8"}, True),
        ({"capabilities:vcpus_total": ">= 9"}, False),
        ({"capabilities:free_ram_mb": "<= 16384"}, True),
        ({"capabilities:hypervisor_type": "s== QEMU"}, True),
        ({"capabilities:hypervisor_hostname": "h.node"}, True),
        ({"capabilities:cpu_info:arch": "x86_64"}, True),
        ({"capabilities:cpu_info:topology:cores": "4"}, True),
        ({"capabilities:cpu_info:topology:cores": "== 5"}, False),
        ({"capabilities:cpu_info:text:inner": "3"}, True),  # JSON inside a string is opened
        ({"capabilities:cpu_info:arch:deeper": "x"}, False),
        ({"capabilities:rack": "r7"}, True),  # from stats
        ({"capabilities:nosuch": "1"}, False),
        ({"capabilities:host_ip": "192.0.2.1"}, True),
        ({"capabilities:disk_available_least": "1"}, False),  # known, and null on this host
        ({"rack": "r7"}, True),
        ({"rack": "r8"}, False),
        ({"nosuch": "1"}, True),  # unscoped and unknown: another filter's
        ({"aggregate_instance_extra_specs:ssd": "true"}, True),
        ({"hw:cpu_policy": "dedicated"}, True),
        ({"resources:VCPU": "4"}, True),
        ({"hw:maxphysaddr_bits": "46"}, False),  # asked for, and not reported
    ],
)
def test_capabilities_are_looked_for_by_path(extra_specs: dict[str, str], passes: bool) -> None:
    host = state(stats={"rack": "r7"})
    assert verdict(capabilities_filter.FILTER, request(extra_specs=extra_specs), host).passed is passes


@pytest.mark.parametrize(("bits", "passes"), [("46", True), ("47", False)])
def test_the_width_of_addresses_is_a_capability_of_the_cpu(bits: str, passes: bool) -> None:
    host = state(cpu_info={"maxphysaddr": {"mode": "emulate", "bits": 46}})
    asked = request(extra_specs={"hw:maxphysaddr_bits": bits})
    assert verdict(capabilities_filter.FILTER, asked, host).passed is passes


def test_a_refused_capability_is_told_with_both_values() -> None:
    asked = request(extra_specs={"capabilities:vcpus_total": ">= 9"})
    assert str(verdict(capabilities_filter.FILTER, asked, state())) == "its vcpus_total is 8, wanted >= 9"


def test_every_named_capability_can_be_read() -> None:
    host = state(aggregates=(aggregate("fast", "h"),))
    assert all(getter(host) is not None for name, getter in attributes.ATTRIBUTES.items()
               if name != "disk_available_least")  # fmt: skip


@pytest.mark.parametrize(
    ("image", "passes"),
    [
        ({}, True),
        ({"hw_architecture": "x86_64"}, True),
        ({"hw_architecture": "AMD64"}, True),
        ({"architecture": "x86_64"}, True),  # the name of before
        ({"architecture": "aarch64", "hw_architecture": "x86_64"}, True),  # the new name wins
        ({"hw_architecture": "i386"}, True),
        ({"hw_architecture": "aarch64"}, False),
        ({"img_hv_type": "qemu"}, True),
        ({"hypervisor_type": "xapi"}, True),
        ({"img_hv_type": "kvm"}, False),
        ({"hw_vm_mode": "hvm"}, True),
        ({"vm_mode": "pv"}, True),
        ({"hw_vm_mode": "exe"}, False),
        ({"hw_architecture": "x86_64", "img_hv_type": "qemu", "hw_vm_mode": "hvm"}, True),
        ({"hw_architecture": "x86_64", "hw_vm_mode": "xen"}, False),  # each exists, not in one triple
        ({"img_hv_requested_version": ">=8.2"}, True),
        ({"img_hv_requested_version": ">=8.2, <8.2.2"}, False),
        ({"hypervisor_version_requires": "==8.2.2"}, True),
        ({"img_hv_requested_version": "!=8.2.2"}, False),
        ({"img_hv_requested_version": "new"}, False),
        ({"hw_maxphysaddr_bits": 48}, True),  # the host does not say
    ],
)
def test_an_image_runs_where_one_kind_of_guest_has_all_it_asks(image: dict[str, Any], passes: bool) -> None:
    assert verdict(image_properties_filter.FILTER, request(image=image), state()).passed is passes


@pytest.mark.parametrize(("image", "passes"), [({"hw_vm_mode": "hvm"}, False), ({}, True)])
def test_a_host_that_names_no_guests_takes_only_images_that_ask_nothing(image: dict[str, str], passes: bool) -> None:
    host = state(supported_instances=())
    assert verdict(image_properties_filter.FILTER, request(image=image), host).passed is passes


def test_the_default_architecture_counts_for_images_without_one() -> None:
    settings = SchedulerSettings(image_properties_default_architecture="aarch64")
    assert not verdict(image_properties_filter.FILTER, request(settings=settings), state()).passed
    asked = request(settings=settings, image={"hw_architecture": "x86_64"})
    assert verdict(image_properties_filter.FILTER, asked, state()).passed


@pytest.mark.parametrize(("bits", "passes"), [(46, True), (47, False)])
def test_an_image_with_wider_addresses_than_the_host_is_refused(bits: int, passes: bool) -> None:
    host = state(cpu_info={"maxphysaddr": {"bits": 46}})
    asked = request(image={"hw_maxphysaddr_bits": bits})
    assert verdict(image_properties_filter.FILTER, asked, host).passed is passes


def group(policy: str, *hosts: str, **rules: int) -> GroupSpec:
    return GroupSpec(uuid="group", policy=policy, rules=rules, hosts=hosts)


@pytest.mark.parametrize(
    ("of", "placed", "passes"),
    [
        (None, {}, True),
        (group("affinity", "h"), {}, True),
        (group("soft-anti-affinity", "h"), {}, True),
        (group("anti-affinity"), {}, True),
        (group("anti-affinity", "other"), {}, True),
        (group("anti-affinity", "h"), {}, False),
        (group("anti-affinity"), {"a": "h"}, False),
        (group("anti-affinity"), {"server": "h"}, True),  # the very server that is being placed
        (group("anti-affinity", max_server_per_host=2), {"a": "h"}, True),
        (group("anti-affinity", max_server_per_host=2), {"a": "h", "b": "h"}, False),
        (group("anti-affinity", "h", max_server_per_host=2), {}, True),
    ],
)
def test_anti_affinity_counts_the_members_on_a_host(
    of: GroupSpec | None, placed: dict[str, str], passes: bool
) -> None:
    assert verdict(anti_affinity_filter.FILTER, request(group=of, placed=placed), state("h")).passed is passes


@pytest.mark.parametrize(
    ("of", "placed", "passes"),
    [
        (None, {}, True),
        (group("affinity"), {}, True),
        (group("affinity", "h"), {}, True),
        (group("affinity", "other"), {}, False),
        (group("affinity"), {"a": "other"}, False),
        (group("affinity", "other"), {"a": "h"}, True),
        (group("soft-affinity", "other"), {}, True),
        (group("anti-affinity", "other"), {}, True),
    ],
)
def test_affinity_stays_with_the_members(of: GroupSpec | None, placed: dict[str, str], passes: bool) -> None:
    assert verdict(affinity_filter.FILTER, request(group=of, placed=placed), state("h")).passed is passes


def test_only_group_filters_are_asked_again_for_each_server_of_a_request() -> None:
    rows = (compute_filter, capabilities_filter, image_properties_filter, anti_affinity_filter, affinity_filter)
    assert [row.FILTER.once for row in rows] == [True, True, True, False, False]
    assert [row.FILTER.on_rebuild for row in rows] == [False, False, True, False, False]
