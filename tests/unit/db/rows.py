"""Rows as agents report them, and servers."""

from __future__ import annotations

from typing import Any

from kilonova.core import clock, ids
from kilonova.core.server import Server

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


def server(name: str, **changes: Any) -> Server:
    """A server of the least."""
    values: dict[str, Any] = {
        "uuid": ids.new_uuid(), "project_id": "p", "user_id": "u", "display_name": name, "hostname": "h",
        "vm_state": "active", "instance_type_id": 1, "memory_mb": 1, "vcpus": 1, "root_gb": 1, "reservation_id": "r",
        "metadata": {}, "system_metadata": {}, "flavor": {}, "network_info": [], "security_groups": [],
        "attachments": [], "created_at": clock.utcnow(),
    }  # fmt: skip
    return Server(**(values | changes))
