"""What a host has, by the names that extra specs and hints use (`capabilities:free_ram_mb`, `$stats.rack`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from kilonova.core import json
from kilonova.scheduler.host_state import HostState

MISSING: Final = object()

ATTRIBUTES: dict[str, Callable[[HostState], Any]] = {
    "id": lambda state: state.row.id,
    "uuid": lambda state: state.uuid,
    "host": lambda state: state.host,
    "nodename": lambda state: state.node,
    "hypervisor_hostname": lambda state: state.node,
    "hypervisor_type": lambda state: state.row.hypervisor_type,
    "hypervisor_version": lambda state: state.row.hypervisor_version,
    "host_ip": lambda state: state.row.host_ip,
    "cell_uuid": lambda state: state.cell_uuid,
    "updated": lambda state: state.row.changed_at,
    "cpu_info": lambda state: state.row.cpu_info,
    "stats": lambda state: state.row.stats,
    "metrics": lambda state: state.row.metrics,
    "supported_instances": lambda state: state.row.supported_instances,
    "supported_hv_specs": lambda state: state.row.supported_instances,
    "vcpus": lambda state: state.row.vcpus,
    "vcpus_total": lambda state: state.vcpus_total,
    "vcpus_used": lambda state: state.vcpus_used,
    "memory_mb": lambda state: state.row.memory_mb,
    "memory_mb_used": lambda state: state.row.memory_mb - state.free_ram_mb,
    "free_ram_mb": lambda state: state.free_ram_mb,
    "total_usable_ram_mb": lambda state: state.row.memory_mb,
    "local_gb": lambda state: state.row.local_gb,
    "total_usable_disk_gb": lambda state: state.row.local_gb,
    "local_gb_used": lambda state: state.row.local_gb_used,
    "disk_mb_used": lambda state: state.row.local_gb_used * 1024,
    "free_disk_mb": lambda state: state.free_disk_mb,
    "free_disk_gb": lambda state: state.free_disk_mb // 1024,
    "disk_available_least": lambda state: state.row.disk_available_least,
    "current_workload": lambda state: state.row.current_workload,
    "running_vms": lambda state: state.row.running_vms,
    "num_instances": lambda state: state.num_instances,
    "num_io_ops": lambda state: state.num_io_ops,
    "failed_builds": lambda state: state.failed_builds,
    "cpu_allocation_ratio": lambda state: state.row.cpu_allocation_ratio,
    "ram_allocation_ratio": lambda state: state.row.ram_allocation_ratio,
    "disk_allocation_ratio": lambda state: state.row.disk_allocation_ratio,
    "aggregates": lambda state: sorted(row.name for row in state.aggregates),
}


def value_at(state: HostState, path: Sequence[str]) -> Any:
    """What the host has under a path: an attribute or a stat first, then keys of documents (JSON in a string is
    opened); MISSING when it has no such thing.
    """
    first = path[0]
    getter = ATTRIBUTES.get(first)
    value: Any = getter(state) if getter is not None else state.row.stats.get(first, MISSING)
    for key in path[1:]:
        if isinstance(value, str):
            try:
                value = json.loads(value)
            except ValueError:
                return MISSING
        if not isinstance(value, Mapping):
            return MISSING
        value = value.get(key, MISSING)
    return value


def metrics_of(state: HostState) -> dict[str, float]:
    """The host's metrics by name; what is no number is left out."""
    rows = state.row.metrics if isinstance(state.row.metrics, list) else ()
    found = {}
    for row in rows:
        if isinstance(row, Mapping) and isinstance(value := row.get("value"), (int, float)):
            found[str(row.get("name"))] = float(value)
    return found
