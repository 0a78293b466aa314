from __future__ import annotations

import dataclasses

import pytest

from kilonova.agent.inventory import host_report, provider, report_print, with_ratios, with_traits
from kilonova.agent.settings import AgentSettings
from kilonova.virt.driver import HostFacts, Usage

FACTS = HostFacts("h", "n", "u", "fake", 1000, vcpus=8, memory_mb=4096, local_gb=100)
SETTINGS = AgentSettings()


def test_inventory_has_the_whole_host_with_memory_reserved_for_it() -> None:
    sent = with_ratios(provider(FACTS, SETTINGS, frozenset(), disabled=False), {})
    assert sent == {
        "VCPU": {"total": 8, "reserved": 0, "min_unit": 1, "max_unit": 8, "step_size": 1, "allocation_ratio": 4.0},
        "MEMORY_MB": {
            "total": 4096, "reserved": 512, "min_unit": 1, "max_unit": 4096, "step_size": 1, "allocation_ratio": 1.0,
        },
        "DISK_GB": {
            "total": 100, "reserved": 0, "min_unit": 1, "max_unit": 100, "step_size": 1, "allocation_ratio": 1.0,
        },
    }  # fmt: skip


@pytest.mark.parametrize(("configured", "existing", "expected"), [
    (None, None, 4.0), (None, 7.0, 7.0), (2.0, 7.0, 2.0),
])  # fmt: skip
def test_a_ratio_is_the_configured_else_the_existing_else_the_initial_one(
    configured: float | None, existing: float | None, expected: float
) -> None:
    settings = dataclasses.replace(SETTINGS, cpu_allocation_ratio=configured)
    there = {} if existing is None else {"VCPU": {"allocation_ratio": existing}}
    sent = with_ratios(provider(FACTS, settings, frozenset(), disabled=False), there)
    assert sent["VCPU"]["allocation_ratio"] == expected


def test_classes_and_traits_set_from_outside_stay() -> None:
    wanted = provider(FACTS, SETTINGS, frozenset({"COMPUTE_VOLUME_ATTACH"}), disabled=False)
    assert with_ratios(wanted, {"CUSTOM_GPU": {"total": 1}})["CUSTOM_GPU"] == {"total": 1}
    names = with_traits(wanted, ["CUSTOM_FAST", "HW_CPU_X86_AVX", "COMPUTE_STATUS_DISABLED", "COMPUTE_ACCELERATORS"])
    assert names == {"CUSTOM_FAST", "HW_CPU_X86_AVX", "COMPUTE_VOLUME_ATTACH", "COMPUTE_NODE", "OWNER_NOVA"}


def test_a_disabled_host_has_the_trait_and_another_fingerprint() -> None:
    on, off = (provider(FACTS, SETTINGS, frozenset(), disabled=disabled) for disabled in (False, True))
    assert off.traits - on.traits == {"COMPUTE_STATUS_DISABLED"}
    assert on.fingerprint != off.fingerprint
    assert on.fingerprint == provider(FACTS, SETTINGS, frozenset(), disabled=False).fingerprint


def test_a_disk_reserve_rounds_up() -> None:
    settings = dataclasses.replace(SETTINGS, reserved_host_disk_mb=1025)
    assert provider(FACTS, settings, frozenset(), disabled=False).inventory["DISK_GB"]["reserved"] == 2
    assert host_report(FACTS, Usage(), settings).local_gb_used == 2


def test_reported_usage_begins_at_what_is_reserved() -> None:
    report = host_report(FACTS, Usage(guests=2, vcpus=3, memory_mb=1000, disk_gb=20), SETTINGS)
    assert (report.vcpus_used, report.memory_mb_used, report.local_gb_used, report.running_vms) == (3, 1512, 20, 2)
    assert report.stats == {"num_instances": 2}
    assert report_print(report) != report_print(host_report(FACTS, Usage(), SETTINGS))


def test_a_ratio_of_zero_in_the_configuration_means_unset() -> None:
    class Conf:
        class compute:
            image_type_exclude_list = ["qcow2"]
            cpu_shared_set = cpu_dedicated_set = None
            packing_host_numa_cells_allocation_strategy = False

        class pci:
            device_spec: tuple[str, ...] = ()
            report_in_placement = False

        reserved_huge_pages = None
        report_interval, periodic_enable = 10, True
        update_resources_interval = 0
        max_concurrent_builds = 10
        reserved_host_memory_mb, reserved_host_disk_mb, reserved_host_cpus = 512, 0, 0
        cpu_allocation_ratio, ram_allocation_ratio, disk_allocation_ratio = 0.0, None, 1.5
        initial_cpu_allocation_ratio, initial_ram_allocation_ratio, initial_disk_allocation_ratio = 4.0, 1.0, 1.0

    settings = AgentSettings.from_conf(Conf())
    assert (settings.cpu_allocation_ratio, settings.disk_allocation_ratio) == (None, 1.5)
    assert settings.image_type_exclude_list == ("qcow2",)


def test_excluded_image_types_are_not_offered() -> None:
    settings = dataclasses.replace(SETTINGS, image_type_exclude_list=("qcow2",))
    offers = frozenset({"COMPUTE_IMAGE_TYPE_QCOW2", "COMPUTE_IMAGE_TYPE_RAW"})
    offered = provider(FACTS, settings, offers, disabled=False)
    assert "COMPUTE_IMAGE_TYPE_RAW" in offered.traits
    assert "COMPUTE_IMAGE_TYPE_QCOW2" not in offered.traits
