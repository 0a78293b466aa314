"""Extra specs that mean something, and what their values may be: one row per key or family of keys.

Applied from microversion 2.86 on (flavor-extra-specs.md 1, 2). A key without a colon, or of a foreign namespace, is
free; an unknown key of a known namespace is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from kilonova.core.errors import Invalid


class ExtraSpecInvalid(Invalid):
    """A known extra spec with a value it cannot have, or an unknown one where all are known."""

    code, message = "extra_spec_invalid", "Validation failed; {why}"


Check = Callable[[str], str | None]
"""Why a value is refused, or None."""


def integer(low: int | None = None, high: int | None = None) -> Check:
    """An integer within bounds, both included."""

    def check(value: str) -> str | None:
        try:
            number = int(value)
        except ValueError:
            return "it is not an integer"
        if low is not None and number < low:
            return f"it is below {low}"
        if high is not None and number > high:
            return f"it is above {high}"
        return None

    return check


_BOOLEANS = frozenset(("1", "t", "true", "on", "y", "yes", "0", "f", "false", "off", "n", "no"))


def boolean(value: str) -> str | None:
    """A word for true or false."""
    return None if value.strip().lower() in _BOOLEANS else "it is not a boolean-like value"


def one_of(*values: str) -> Check:
    """One of some words."""
    return lambda value: None if value in values else f"it is not one of {', '.join(values)}"


def matching(pattern: str) -> Check:
    """A full match."""
    compiled = re.compile(pattern)
    return lambda value: None if compiled.fullmatch(value) else f"it does not match {pattern}"


def free(_value: str) -> None:
    """Anything."""


MASK: Final = matching(r"\^?\d+((-\d+)?(,\^?\d+(-\d+)?)?)*")
_SUFFIX = r"[a-zA-Z0-9_-]{0,64}"
_CAPABILITY = (
    "id|uuid|service_id|host|vcpus|memory_mb|local_gb|vcpus_used|memory_mb_used|local_gb_used|hypervisor_type|"
    "hypervisor_version|hypervisor_hostname|free_ram_mb|free_disk_gb|current_workload|running_vms|"
    "disk_available_least|host_ip|mapped|cpu_allocation_ratio|ram_allocation_ratio|disk_allocation_ratio|"
    "total_usable_ram_mb|total_usable_disk_gb|disk_mb_used|free_disk_mb|vcpus_total|num_instances|"
    "num_io_ops|failed_builds|aggregates|cell_uuid|updated"
)
_NESTED = (
    "cpu_info|metrics|stats|numa_topology|supported_hv_specs|pci_device_pools|nodename|pci_stats|"
    "supported_instances|limits|instances"
)


@dataclass(frozen=True, slots=True)
class SpecRule:
    """key: the key itself, or with `pattern` a regular expression that matches all of it."""

    key: str
    check: Check
    pattern: bool = False


def _quota() -> tuple[SpecRule, ...]:
    rows = []
    for resource in ("cpu", "memory", "disk_io", "vif"):
        rows += [
            SpecRule(f"quota:{resource}_limit", integer(0)),
            SpecRule(f"quota:{resource}_reservation", integer()),
            SpecRule(f"quota:{resource}_shares_level", one_of("custom", "high", "normal", "low")),
            SpecRule(f"quota:{resource}_shares_share", integer(0)),
        ]
    return (
        *rows,
        SpecRule("quota:cpu_shares", integer(0)),
        SpecRule("quota:cpu_period", integer(0)),
        SpecRule("quota:cpu_quota", integer()),
        SpecRule(r"quota:disk_(read|write|total)_(bytes|iops)_sec", integer(0), pattern=True),
        SpecRule(r"quota:vif_(inbound|outbound)_(average|peak|burst)", integer(0), pattern=True),
    )


SPEC_RULES: Final[tuple[SpecRule, ...]] = (
    SpecRule("group_policy", one_of("isolate", "none")),
    SpecRule("hide_hypervisor_id", boolean),
    SpecRule("accel:device_profile", free),
    SpecRule(r"aggregate_instance_extra_specs:.+", free, pattern=True),
    SpecRule(rf"capabilities:({_CAPABILITY})", free, pattern=True),
    SpecRule(rf"capabilities:({_NESTED})(:\w+)*", free, pattern=True),
    SpecRule("hw:boot_menu", boolean),
    SpecRule(r"hw:cpu_(max_)?(cores|sockets|threads)", integer(1), pattern=True),
    SpecRule("hw:cpu_policy", one_of("dedicated", "shared", "mixed")),
    SpecRule("hw:cpu_thread_policy", one_of("prefer", "isolate", "require")),
    SpecRule("hw:cpu_dedicated_mask", MASK),
    SpecRule("hw:cpu_realtime", boolean),
    SpecRule("hw:cpu_realtime_mask", MASK),
    SpecRule("hw:emulator_threads_policy", one_of("isolate", "share")),
    SpecRule("hw:ephemeral_encryption", boolean),
    SpecRule("hw:ephemeral_encryption_format", one_of("plain", "luks", "luksv2")),
    SpecRule("hw:hide_hypervisor_id", boolean),
    SpecRule("hw:locked_memory", boolean),
    SpecRule("hw:mem_encryption", boolean),
    SpecRule("hw:mem_encryption_model", one_of("amd-sev", "amd-sev-es", "amd-sev-snp", "intel-tdx")),
    SpecRule("hw:mem_page_size", matching(r"(large|small|any|\d+([kKMGT]i?)?(b|bit|B)?)")),
    SpecRule("hw:numa_nodes", integer(1)),
    SpecRule(r"hw:numa_cpus\.\d+", MASK, pattern=True),
    SpecRule(r"hw:numa_mem\.\d+", integer(1), pattern=True),
    SpecRule("hw:pci_numa_affinity_policy", one_of("required", "preferred", "legacy", "socket")),
    SpecRule("hw:pmem", matching(r"([a-zA-Z0-9_]+(,[a-zA-Z0-9_]+)*)")),
    SpecRule("hw:pmu", boolean),
    SpecRule("hw:redirected_usb_ports", integer(0, 15)),
    SpecRule("hw:serial_port_count", integer(0)),
    SpecRule("hw:sound_model", one_of("sb16", "es1370", "pcspk", "ac97", "ich6", "ich9", "usb", "virtio")),
    SpecRule("hw:tpm_model", one_of("tpm-tis", "tpm-crb")),
    SpecRule("hw:tpm_version", one_of("1.2", "2.0")),
    SpecRule("hw:tpm_secret_security", one_of("user", "host", "deployment")),
    SpecRule("hw:usb_model", one_of("none", "nec-xhci", "qemu-xhci")),
    SpecRule("hw:vif_multiqueue_enabled", boolean),
    SpecRule("hw:viommu_model", one_of("intel", "smmuv3", "virtio", "auto")),
    SpecRule("hw:virtio_packed_ring", boolean),
    SpecRule("hw:watchdog_action", one_of("none", "pause", "poweroff", "reset", "disabled")),
    SpecRule("hw_rng:allowed", boolean),
    SpecRule(r"hw_rng:rate_(bytes|period)", integer(0), pattern=True),
    SpecRule("hw_video:ram_max_mb", integer(0)),
    SpecRule("os:secure_boot", one_of("disabled", "required")),
    SpecRule("pci_passthrough:alias", matching(r"[^:]+:\d+(?:\s*,\s*[^:]+:\d+)*")),
    SpecRule("vmware:hw_version", free),
    SpecRule("vmware:storage_policy", free),
    *_quota(),
)

_NAMESPACES = re.compile(
    r"accel|aggregate_instance_extra_specs|capabilities|hw|hw_rng|hw_video|os|pci_passthrough|quota|vmware|"
    rf"resources{_SUFFIX}|trait{_SUFFIX}"
)
_RESOURCE = re.compile(rf"resources{_SUFFIX}:(?P<name>.+)")
_TRAIT = re.compile(rf"trait{_SUFFIX}:(?P<name>.+)")
_CUSTOM = re.compile(r"CUSTOM_[A-Z0-9_]+")


@cache
def _exact() -> dict[str, Check]:
    return {row.key: row.check for row in SPEC_RULES if not row.pattern}


@cache
def _patterns() -> tuple[tuple[re.Pattern[str], Check], ...]:
    return tuple((re.compile(row.key), row.check) for row in SPEC_RULES if row.pattern)


@cache
def _standard(kind: str) -> frozenset[str]:
    if kind == "trait":
        import os_traits

        return frozenset(os_traits.get_traits())
    import os_resource_classes

    return frozenset(os_resource_classes.STANDARDS)


def _check_of(key: str) -> Check | None:
    found = _exact().get(key)
    if found is not None:
        return found
    for kind, pattern, check in (
        ("resource", _RESOURCE, integer()), ("trait", _TRAIT, one_of("required", "forbidden"))
    ):  # fmt: skip
        match = pattern.fullmatch(key)
        if match and (match["name"] in _standard(kind) or _CUSTOM.fullmatch(match["name"])):
            return check
    return next((check for pattern, check in _patterns() if pattern.fullmatch(key)), None)


def validate(specs: Mapping[str, Any]) -> None:
    """ExtraSpecInvalid for the first pair that breaks a rule."""
    for key, value in specs.items():
        check = _check_of(key)
        if check is not None:
            why = check(str(value))
            if why is not None:
                raise ExtraSpecInvalid(why=f"extra spec '{key}' has the value {value!r}: {why}.")
        elif ":" in key and _NAMESPACES.fullmatch(key.partition(":")[0]):
            raise ExtraSpecInvalid(why=f"extra spec '{key}' does not appear to be a valid extra spec.")
