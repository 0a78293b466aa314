"""From a spec to Placement's query string."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kilonova.core.request_spec import FlavorSpec, ImageSpec, RequestSpec, ResourceGroup
from kilonova.scheduler.plugins import Additions
from kilonova.scheduler.resource_request import requested_traits, to_query

NOTHING = Additions()


def spec(extra_specs: dict[str, str] | None = None, image: dict[str, Any] | None = None, **values: Any) -> RequestSpec:
    sizes = {"memory_mb": 2048, "vcpus": 2, "root_gb": 10} | {
        name: values.pop(name) for name in list(values) if name in FlavorSpec.__struct_fields__
    }
    flavor = FlavorSpec(id=1, flavorid="1", name="f", extra_specs=extra_specs or {}, **sizes)  # type: ignore[arg-type]
    return RequestSpec(
        project_id="p", user_id="u", flavor=flavor, image=ImageSpec(properties=image or {}), **values
    )  # fmt: skip


def query(asked: RequestSpec, additions: Additions = NOTHING, **options: Any) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, value in parse_qsl(to_query(asked, additions, **options), keep_blank_values=True):
        found.setdefault(name, []).append(value)
    return found


@pytest.mark.parametrize(
    ("asked", "resources"),
    [
        (spec(), "DISK_GB:10,MEMORY_MB:2048,VCPU:2"),
        (spec(ephemeral_gb=5, swap=1025), "DISK_GB:17,MEMORY_MB:2048,VCPU:2"),  # swap rounds up to GiB
        (spec(ephemeral_gb=5, is_bfv=True), "DISK_GB:5,MEMORY_MB:2048,VCPU:2"),  # a volume has the root disk
        (spec(root_gb=0), "MEMORY_MB:2048,VCPU:2"),  # nothing is not asked for
        (spec({"resources:VCPU": "4"}), "DISK_GB:10,MEMORY_MB:2048,VCPU:4"),
        (spec({"resources:VCPU": "0"}), "DISK_GB:10,MEMORY_MB:2048"),
        (spec({"resources:PCPU": "2"}), "DISK_GB:10,MEMORY_MB:2048,PCPU:2"),  # no VCPU beside PCPU
        (spec({"resources:CUSTOM_GOLD": "1"}), "CUSTOM_GOLD:1,DISK_GB:10,MEMORY_MB:2048,VCPU:2"),
        (spec({"resources:NOSUCH": "1"}), "DISK_GB:10,MEMORY_MB:2048,VCPU:2"),
        (spec({"resources:VGPU": "-1"}), "DISK_GB:10,MEMORY_MB:2048,VCPU:2"),
        (spec({"resources:VGPU": "one"}), "DISK_GB:10,MEMORY_MB:2048,VCPU:2"),
        (spec({"resources1:MEMORY_MB": "64"}), "DISK_GB:10,VCPU:2"),  # named anywhere: no default
    ],
)
def test_the_unnamed_group_has_the_flavors_amounts_unless_overridden(asked: RequestSpec, resources: str) -> None:
    assert query(asked)["resources"] == [resources]


def test_bare_metal_asks_for_its_class_alone() -> None:
    zeros = {"resources:VCPU": "0", "resources:MEMORY_MB": "0", "resources:DISK_GB": "0"}
    assert query(spec(zeros | {"resources:CUSTOM_METAL": "1"})) == {"resources": ["CUSTOM_METAL:1"]}


def test_traits_come_from_flavor_and_image_required_before_forbidden() -> None:
    asked = spec(
        {"trait:HW_CPU_X86_VMX": "required", "trait:CUSTOM_SLOW": "forbidden", "trait:CUSTOM_ODD": "perhaps"},
        {"trait:CUSTOM_IMG": "required", "trait:CUSTOM_NOT": "forbidden"},
    )
    assert query(asked)["required"] == ["CUSTOM_IMG,HW_CPU_X86_VMX,!CUSTOM_SLOW"]
    assert requested_traits(asked) == {"CUSTOM_IMG", "HW_CPU_X86_VMX"}


def test_named_groups_carry_their_suffix_and_the_policy() -> None:
    asked = spec({
        "resources_gpu-a:VGPU": "1", "trait_gpu-a:CUSTOM_RED": "required", "resources2:SRIOV_NET_VF": "1",
        "trait3:CUSTOM_LONE": "required", "group_policy": "isolate",
    })  # fmt: skip
    found = query(asked)
    assert found["resources_gpu-a"] == ["VGPU:1"]
    assert found["required_gpu-a"] == ["CUSTOM_RED"]
    assert found["resources2"] == ["SRIOV_NET_VF:1"]
    assert found["resources3"] == [""]  # traits without resources still make a group
    assert found["required3"] == ["CUSTOM_LONE"]
    assert found["group_policy"] == ["isolate"]


@pytest.mark.parametrize(("value", "warned"), [("sometimes", True), ("none", False)])
def test_an_unknown_group_policy_is_left_out_with_a_warning(
    value: str, warned: bool, caplog: pytest.LogCaptureFixture
) -> None:
    found = query(spec({"group_policy": value, "resources1:VGPU": "1"}))
    assert ("group_policy" in found) is not warned
    assert any(row.levelname == "WARNING" for row in caplog.records) is warned


def test_two_named_groups_without_a_policy_are_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    query(spec({"resources1:VGPU": "1", "resources2:VGPU": "1"}))
    assert [row.levelname for row in caplog.records] == ["WARNING"]


def test_additions_become_membership_and_root_traits() -> None:
    additions = Additions(
        frozenset({"B", "A"}), frozenset({"Z", "Y"}), (("2", "1"), ("3",)), frozenset({"9", "8"})
    )  # fmt: skip
    found = query(spec(), additions)
    assert found["root_required"] == ["A,B,!Y,!Z"]
    assert sorted(found["member_of"]) == ["!in:8,9", "in:1,2", "in:3"]


def test_a_target_tree_and_a_limit_are_parameters() -> None:
    found = query(spec(), in_tree="abc", limit=5)
    assert (found["in_tree"], found["limit"]) == (["abc"], ["5"])
    assert not {"in_tree", "limit", "group_policy", "root_required"} & query(spec()).keys()


@given(st.permutations(["resources:VCPU", "trait:CUSTOM_A", "resources1:VGPU", "trait1:CUSTOM_B"]))
def test_the_query_does_not_depend_on_the_order_of_extra_specs(keys: list[str]) -> None:
    text = to_query(spec({key: "3" if "resources" in key else "required" for key in keys}), Additions())
    assert text == (
        "required=CUSTOM_A&required1=CUSTOM_B&resources=DISK_GB%3A10%2CMEMORY_MB%3A2048%2CVCPU%3A3&resources1=VGPU%3A3"
    )


@pytest.mark.parametrize(
    ("extra_specs", "image", "resources"),
    [
        ({"hw:cpu_policy": "dedicated"}, {}, {"PCPU": 4}),
        ({}, {"hw_cpu_policy": "dedicated"}, {"PCPU": 4}),
        ({"hw:cpu_policy": "shared"}, {}, {"VCPU": 4}),
        ({"hw:cpu_policy": "dedicated", "hw:emulator_threads_policy": "isolate"}, {}, {"PCPU": 5}),
        ({"hw:cpu_policy": "mixed", "hw:cpu_dedicated_mask": "0-2"}, {}, {"PCPU": 3, "VCPU": 1}),
        ({"hw:cpu_policy": "mixed", "hw:cpu_realtime": "yes", "hw:cpu_realtime_mask": "^0"}, {},
         {"PCPU": 3, "VCPU": 1}),
        ({"hw:cpu_policy": "mixed", "hw:cpu_dedicated_mask": "3", "hw:emulator_threads_policy": "isolate"}, {},
         {"PCPU": 2, "VCPU": 3}),
        ({"hw:mem_encryption": "true"}, {}, {"VCPU": 4, "MEM_ENCRYPTION_CONTEXT": 1}),
        ({"hw:pmem": "big,small,big"}, {},
         {"VCPU": 4, "CUSTOM_PMEM_NAMESPACE_BIG": 2, "CUSTOM_PMEM_NAMESPACE_SMALL": 1}),
    ],
)  # fmt: skip
def test_features_of_the_guest_ask_for_resources(
    extra_specs: dict[str, str], image: dict[str, Any], resources: dict[str, int]
) -> None:
    (text,) = query(spec(extra_specs, image, vcpus=4, memory_mb=0, root_gb=0))["resources"]
    assert {name: int(n) for name, n in (pair.split(":") for pair in text.split(","))} == resources


@pytest.mark.parametrize(
    ("extra_specs", "image", "traits"),
    [
        ({"hw:cpu_thread_policy": "require"}, {}, "HW_CPU_HYPERTHREADING"),
        ({}, {"hw_cpu_thread_policy": "isolate"}, "!HW_CPU_HYPERTHREADING"),
        ({"hw:mem_encryption": "true"}, {}, "HW_CPU_X86_AMD_SEV"),
        ({"hw:mem_encryption": "true"}, {"hw_mem_encryption_model": "intel-tdx"}, "HW_CPU_X86_INTEL_TDX"),
        ({"hw:tpm_version": "1.2"}, {}, "COMPUTE_SECURITY_TPM_1_2,COMPUTE_SECURITY_TPM_TIS"),
        ({}, {"hw_tpm_version": "2.0", "hw_tpm_model": "tpm-crb"},
         "COMPUTE_SECURITY_TPM_2_0,COMPUTE_SECURITY_TPM_CRB"),
        ({"hw:pci_numa_affinity_policy": "socket"}, {}, "COMPUTE_SOCKET_PCI_NUMA_AFFINITY"),
        ({"os:secure_boot": "required"}, {}, "COMPUTE_SECURITY_UEFI_SECURE_BOOT"),
        ({"os:secure_boot": "disabled"}, {}, None),
        ({"hw:maxphysaddr_mode": "emulate"}, {}, "COMPUTE_ADDRESS_SPACE_EMULATED"),
        ({"hw:maxphysaddr_mode": "passthrough"}, {}, "COMPUTE_ADDRESS_SPACE_PASSTHROUGH"),
        ({}, {"hw_firmware_stateless": "true", "hw_firmware_type": "uefi"}, "COMPUTE_SECURITY_STATELESS_FIRMWARE"),
        ({}, {"hw_firmware_stateless": "true", "hw_firmware_type": "bios"}, None),
    ],
)  # fmt: skip
def test_features_of_the_guest_ask_for_traits(
    extra_specs: dict[str, str], image: dict[str, Any], traits: str | None
) -> None:
    assert query(spec(extra_specs, image)).get("required") == (None if traits is None else [traits])


PORT = "aaaaaaaa-0000-4000-8000-000000000001"
OLD_FORM = {
    "resources": {"NET_BW_EGR_KILOBIT_PER_SEC": 1000}, "required": ["CUSTOM_PHYSNET_A", "CUSTOM_VNIC_TYPE_NORMAL"],
}  # fmt: skip
GROUPS = {
    "request_groups": [
        {"id": "bw", "resources": {"NET_BW_EGR_KILOBIT_PER_SEC": 5}, "required": ["CUSTOM_PHYSNET_A"]},
        {"id": "pps", "resources": {"NET_PACKET_RATE_KILOPACKET_PER_SEC": 7}, "required": ["CUSTOM_VNIC_TYPE_NORMAL"]},
    ],
    "same_subtree": ["pps", "bw"],
}


def interface(asked: dict[str, Any] | None) -> dict[str, Any]:
    return {"network": {"id": "n"}, "port": PORT} | ({"resource_request": asked} if asked else {})


def test_a_port_with_a_resource_request_is_a_group_that_has_its_id() -> None:
    found = query(spec(requested_networks=(interface(OLD_FORM), interface(None))))
    assert found[f"resources{PORT}"] == ["NET_BW_EGR_KILOBIT_PER_SEC:1000"]
    assert found[f"required{PORT}"] == ["CUSTOM_PHYSNET_A,CUSTOM_VNIC_TYPE_NORMAL"]
    assert "group_policy" not in found


def test_a_port_with_several_groups_has_them_in_one_subtree_and_they_need_no_policy_of_the_flavor() -> None:
    found = query(spec(requested_networks=(interface(GROUPS),)))
    assert (found["resourcesbw"], found["resourcespps"]) == (
        ["NET_BW_EGR_KILOBIT_PER_SEC:5"], ["NET_PACKET_RATE_KILOPACKET_PER_SEC:7"],
    )  # fmt: skip
    assert found["same_subtree"] == ["bw,pps"]
    assert found["group_policy"] == ["none"]


def test_a_device_profiles_groups_are_groups_of_the_request() -> None:
    asked = ResourceGroup("device_profile_0", {"FPGA": 1}, ("CUSTOM_FPGA_X",), ("CUSTOM_OLD",))
    found = query(spec({"group_policy": "isolate"}, requested_resources=(asked,)))
    assert found["resourcesdevice_profile_0"] == ["FPGA:1"]
    assert found["requireddevice_profile_0"] == ["CUSTOM_FPGA_X,!CUSTOM_OLD"]
    assert found["group_policy"] == ["isolate"]


def test_several_groups_of_the_flavor_itself_need_a_policy_and_placement_will_say_so() -> None:
    assert "group_policy" not in query(spec({"resources1:VGPU": "1", "resources2:VGPU": "1"}))
    assert query(spec({"resources1:VGPU": "1"}, requested_networks=(interface(OLD_FORM),)))["group_policy"] == ["none"]


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        ((ResourceGroup("", {"FPGA": 1}),), "nobody asks for it"),
        ((ResourceGroup("x"),), "asks for nothing"),
        ((ResourceGroup("x", {"FPGA": 1}), ResourceGroup("x", {"FPGA": 1})), "Two groups of resources have the name x"),
    ],
)
def test_a_group_without_name_or_content_or_with_anothers_name_is_a_programmers_error(
    groups: tuple[ResourceGroup, ...], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        query(spec(requested_resources=groups))


def test_pinned_cpus_can_be_asked_for_as_virtual_ones() -> None:
    pinned = {"hw:cpu_policy": "dedicated", "hw:cpu_thread_policy": "require", "hw:tpm_version": "2.0"}
    assert query(spec(pinned))["resources"] == ["DISK_GB:10,MEMORY_MB:2048,PCPU:2"]
    found = query(spec(pinned), pinned=False)
    assert found["resources"] == ["DISK_GB:10,MEMORY_MB:2048,VCPU:2"]
    assert found["required"] == ["COMPUTE_SECURITY_TPM_2_0,COMPUTE_SECURITY_TPM_TIS"]
