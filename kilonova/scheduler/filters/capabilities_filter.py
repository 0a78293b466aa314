"""ComputeCapabilitiesFilter: what the flavor's extra specs say of the host holds (operators: `scheduler.operators`).

A key `capabilities:<path>` is looked for in the host state, its row, its stats, and below, at each colon, in documents.
A key without a scope counts only when the host has an attribute or stat of that name; other scopes are not ours.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from kilonova.core import json
from kilonova.scheduler.host_state import HostState
from kilonova.scheduler.operators import Test, compile_requirement
from kilonova.scheduler.plugins import Check, Filter
from kilonova.scheduler.request import Request
from kilonova.scheduler.verdict import PASS, Verdict, fail

LOG = logging.getLogger(__name__)

_SCOPE = "capabilities"
_MAXPHYSADDR = "hw:maxphysaddr_bits"

_ATTRIBUTES: dict[str, Callable[[HostState], Any]] = {
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
_MISSING = object()


def _prepare(request: Request) -> Check | None:
    wanted = [row for key, text in request.spec.flavor.extra_specs.items() if (row := _requirement(key, text))]
    if not wanted:
        return None

    def check(state: HostState) -> Verdict:
        for path, scoped, test, text in wanted:
            value = _value(state, path)
            if value is _MISSING and not scoped:
                continue
            if value is _MISSING or value is None:
                LOG.debug("%s fails the extra spec %s: the host has no such capability", state.host, ":".join(path))
                return fail("it does not report {}, wanted {}", ":".join(path), text)
            if not test(str(value)):
                LOG.debug("%s fails the extra spec %s: wanted %s, has %s", state.host, ":".join(path), text, value)
                return fail("its {} is {}, wanted {}", ":".join(path), value, text)
        return PASS

    return check


def _requirement(key: str, text: str) -> tuple[tuple[str, ...], bool, Test, str] | None:
    """(path, whether it must exist, test, the text of it); None for another filter's key."""
    if key == _MAXPHYSADDR:
        return ("cpu_info", "maxphysaddr", "bits"), True, compile_requirement(f">= {text}"), f">= {text}"
    scope, colon, rest = key.partition(":")
    if not colon:
        return (key,), False, compile_requirement(text), text
    if scope != _SCOPE or not rest:
        return None
    return tuple(rest.split(":")), True, compile_requirement(text), text


def _value(state: HostState, path: tuple[str, ...]) -> Any:
    first = path[0]
    getter = _ATTRIBUTES.get(first)
    value: Any = getter(state) if getter is not None else state.row.stats.get(first, _MISSING)
    for key in path[1:]:
        if isinstance(value, str):
            try:
                value = json.loads(value)
            except ValueError:
                return _MISSING
        if not isinstance(value, Mapping):
            return _MISSING
        value = value.get(key, _MISSING)
    return value


FILTER = Filter("ComputeCapabilitiesFilter", _prepare)
