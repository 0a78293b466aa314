"""Rows as agents report them."""

from __future__ import annotations

from typing import Any

from kilonova.core import ids

_NAMESPACE = "00000000-0000-0000-0000-00000000000a"


def node(host: str, **changes: Any) -> dict[str, Any]:
    """A row for `hosts.register`."""
    row: dict[str, Any] = {
        "host": host, "uuid": ids.derived_uuid(_NAMESPACE, host), "hypervisor_hostname": f"{host}.example",
        "hypervisor_type": "fake", "hypervisor_version": 1000, "host_ip": "10.0.0.1", "vcpus": 8, "memory_mb": 4096,
        "local_gb": 100, "vcpus_used": 0, "memory_mb_used": 512, "local_gb_used": 0, "free_ram_mb": 3584,
        "free_disk_gb": 100, "disk_available_least": None, "running_vms": 0, "cpu_info": '{"arch":"x86_64"}',
        "supported_instances": '[["x86_64","fake","hvm"]]', "stats": "{}", "cpu_allocation_ratio": 4.0,
        "ram_allocation_ratio": 1.0, "disk_allocation_ratio": 1.0,
    }  # fmt: skip
    return row | changes


def nodes(*hosts: str) -> list[dict[str, Any]]:
    return [node(host) for host in hosts]
