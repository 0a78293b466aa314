"""Host states and requests for tests of single stages: defaults that pass, changed by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from kilonova.core.request_spec import FlavorSpec, GroupSpec, ImageSpec, RequestSpec
from kilonova.db.queries.host_states import AggregateRow, HostRow
from kilonova.scheduler.host_state import Aggregates, HostState, Snapshot
from kilonova.scheduler.request import Request, Surroundings, group_of
from kilonova.scheduler.settings import SchedulerSettings

WHEN = datetime(2026, 1, 1)
SMALL = FlavorSpec(id=1, flavorid="1", name="m1.small", memory_mb=2048, vcpus=1, root_gb=20)

_ROW: dict[str, Any] = {
    "uuid": "", "cell_uuid": "cell", "id": 1, "host": "", "node": "", "hypervisor_type": "QEMU",
    "hypervisor_version": 8002002, "host_ip": "192.0.2.1", "vcpus": 8, "memory_mb": 16384, "local_gb": 200,
    "vcpus_used": 0, "memory_mb_used": 0, "local_gb_used": 0, "free_ram_mb": 16384, "free_disk_gb": 200,
    "disk_available_least": None, "current_workload": 0, "running_vms": 0, "failed_builds": 0,
    "cpu_info": {"arch": "x86_64", "topology": {"cores": 4}, "text": '{"inner": 3}'},
    "supported_instances": (("x86_64", "qemu", "hvm"), ("i686", "xen", "xen")), "stats": {}, "metrics": [],
    "cpu_allocation_ratio": 4.0, "ram_allocation_ratio": 1.0, "disk_allocation_ratio": 1.0,
    "service_disabled": False, "service_disabled_reason": None, "forced_down": False, "agent": "agent",
    "last_seen_up": WHEN, "changed_at": WHEN,
}  # fmt: skip
_STATE: dict[str, Any] = {
    "aggregates": (), "alive": True, "free_ram_mb": 16384, "free_disk_mb": 200 * 1024, "vcpus_total": 8,
    "vcpus_used": 0, "num_instances": 0, "num_io_ops": 0, "failed_builds": 0,
}  # fmt: skip


def row(host: str = "h", **values: Any) -> HostRow:
    """A hypervisor's row."""
    return HostRow(**(_ROW | {"uuid": f"uuid-{host}", "host": host, "node": f"{host}.node"} | values))


def state(host: str = "h", **values: Any) -> HostState:
    """A host's state; values are of the state where it has the field, else of the row."""
    own = {name: value for name, value in values.items() if name in _STATE}
    return HostState(row=row(host, **{k: v for k, v in values.items() if k not in own}), **(_STATE | own))


def aggregate(name: str, *hosts: str, metadata: Mapping[str, str] | None = None) -> AggregateRow:
    """An aggregate; its uuid is `agg-<name>`."""
    return AggregateRow(1, f"agg-{name}", name, frozenset(hosts), dict(metadata or {}))


def request(
    *,
    extra_specs: Mapping[str, str] | None = None,
    image: Mapping[str, Any] | None = None,
    group: GroupSpec | None = None,
    hosts_of: Mapping[str, str] | None = None,
    placed: Mapping[str, str] | None = None,
    aggregates: Sequence[AggregateRow] = (),
    hosts: Sequence[HostRow] = (),
    server: str = "server",
    settings: SchedulerSettings | None = None,
    around: Surroundings | None = None,
    **spec: Any,
) -> Request:
    """A request of one project for a small flavor."""
    flavor = FlavorSpec(
        id=1, flavorid="1", name="m1.small", memory_mb=2048, vcpus=1, root_gb=20, extra_specs=dict(extra_specs or {})
    )
    asked = RequestSpec(
        project_id="project", user_id="user", flavor=spec.pop("flavor", flavor),
        image=spec.pop("image_spec", ImageSpec(properties=dict(image or {}))), group=group, **spec,
    )  # fmt: skip
    snapshot = Snapshot({row.uuid: row for row in hosts}, {"agent": WHEN}, Aggregates(aggregates))
    group_state = group_of(asked, dict(placed or {}))
    return Request(
        asked, settings or SchedulerSettings(), snapshot, server, group_state, dict(hosts_of or {}),
        around or Surroundings(),
    )  # fmt: skip
