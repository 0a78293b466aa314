"""Compute nodes ("hypervisors"): lists and sums for the API, records for the scheduler, usage from reports.

A node whose service row is gone is skipped everywhere (server view 5, scheduler facts).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from kilonova.core import json, liveness
from kilonova.db.cell_schema import agents, compute_nodes, services
from kilonova.db.queries.hosts import COMPUTE

_NO_LIMIT: Final = 2**31 - 1
_ESCAPE: Final = "/"  # a backslash means different things to the three databases


@dataclass(frozen=True, slots=True)
class ComputeNode:
    """A hypervisor and its service. memory in MiB, disk in GiB."""

    id: int
    uuid: str
    host: str
    hypervisor_hostname: str
    hypervisor_type: str
    hypervisor_version: int
    host_ip: str | None
    vcpus: int
    memory_mb: int
    local_gb: int
    vcpus_used: int
    memory_mb_used: int
    local_gb_used: int
    free_ram_mb: int
    free_disk_gb: int
    disk_available_least: int | None
    current_workload: int
    running_vms: int
    failed_builds: int
    cpu_info: dict[str, Any]
    supported_instances: list[list[str]]
    stats: dict[str, Any]
    metrics: list[dict[str, Any]]
    numa_topology: str | None
    pci_stats: str | None
    cpu_allocation_ratio: float
    ram_allocation_ratio: float
    disk_allocation_ratio: float
    created_at: datetime
    updated_at: datetime | None
    service_id: int
    service_uuid: str
    service_version: int
    disabled: bool
    disabled_reason: str | None
    forced_down: bool
    last_seen_up: datetime | None

    def up(self, now: datetime, down_time: float) -> bool:
        """Whether its service is alive: down_time in seconds (`core.liveness.down_after`)."""
        return liveness.is_up(self.last_seen_up, now, down_time, forced_down=self.forced_down)


_SEEN = sa.func.coalesce(agents.c.last_seen_up, services.c.last_seen_up)
_JOINED = compute_nodes.join(
    services,
    sa.and_(services.c.host == compute_nodes.c.host, services.c.binary == COMPUTE, services.c.deleted.is_(False)),
).outerjoin(agents, agents.c.id == services.c.agent)
_SELECT = (
    sa.select(
        *compute_nodes.c,
        services.c.id.label("service_id"),
        services.c.uuid.label("service_uuid"),
        services.c.version.label("service_version"),
        services.c.disabled,
        services.c.disabled_reason,
        services.c.forced_down,
        sa.type_coerce(_SEEN, services.c.last_seen_up.type).label("last_seen_up"),
    )
    .select_from(_JOINED)
    .order_by(compute_nodes.c.id)
)
_PAGE = _SELECT.where(compute_nodes.c.id > sa.bindparam("after")).limit(sa.bindparam("count", type_=sa.Integer))
_MATCHING = _SELECT.where(compute_nodes.c.hypervisor_hostname.ilike(sa.bindparam("pattern"), escape=_ESCAPE))
_BY_ID = _SELECT.where(compute_nodes.c.id == sa.bindparam("key"))
_BY_UUID = _SELECT.where(compute_nodes.c.uuid == sa.bindparam("key"))
_BY_HOSTS = _SELECT.where(compute_nodes.c.host.in_(sa.bindparam("hosts", expanding=True)))


def list_nodes(connection: Connection, *, limit: int | None = None, after: int = 0) -> list[ComputeNode]:
    """A page ordered by id, of nodes with an id above `after`; limit None is all."""
    values = {"after": after, "count": _NO_LIMIT if limit is None else limit}
    return [_node(row) for row in connection.execute(_PAGE, values)]


def search_nodes(connection: Connection, pattern: str) -> list[ComputeNode]:
    """Nodes whose hypervisor_hostname contains the text, in upper or lower case, ordered by id."""
    escaped = pattern
    for special in (_ESCAPE, "%", "_"):
        escaped = escaped.replace(special, _ESCAPE + special)
    return [_node(row) for row in connection.execute(_MATCHING, {"pattern": f"%{escaped}%"})]


def nodes_of(connection: Connection, hosts: Sequence[str]) -> list[ComputeNode]:
    """The nodes of these hosts, ordered by id."""
    return [_node(row) for row in connection.execute(_BY_HOSTS, {"hosts": list(hosts)})]


def get_node(connection: Connection, key: str | int) -> ComputeNode | None:
    """One node by uuid (text) or id (number), or None."""
    row = connection.execute(_BY_ID if isinstance(key, int) else _BY_UUID, {"key": key}).first()
    return None if row is None else _node(row)


def _node(row: Any) -> ComputeNode:
    values = dict(row._mapping)
    for name in ("cpu_info", "supported_instances", "stats", "metrics"):
        values[name] = json.loads(values[name])
    return ComputeNode(**values)


# -- sums

_SUMMED: Final = (
    "vcpus", "vcpus_used", "memory_mb", "memory_mb_used", "local_gb", "local_gb_used", "free_ram_mb", "free_disk_gb",
    "current_workload", "running_vms", "disk_available_least",
)  # fmt: skip
SUMMED: Final = ("count", *_SUMMED)
"""The keys of `statistics`."""
_SUMS = (
    sa.select(
        sa.func.count().label("nodes"),
        *(sa.func.coalesce(sa.func.sum(compute_nodes.c[name]), 0).label(name) for name in _SUMMED),
    )
    .select_from(_JOINED)
    .where(services.c.disabled.is_(False))
)


def statistics(connection: Connection) -> dict[str, int]:
    """Sums over the nodes of enabled services, and how many they are under `count`."""
    row = connection.execute(_SUMS).one()._mapping
    return {"count": int(row["nodes"])} | {name: int(row[name]) for name in _SUMMED}


# -- changes

_USE = (
    compute_nodes.update()
    .where(compute_nodes.c.host == sa.bindparam("of_host"))
    .values(
        vcpus_used=sa.bindparam("new_vcpus"),
        memory_mb_used=sa.bindparam("new_memory"),
        local_gb_used=sa.bindparam("new_disk"),
        running_vms=sa.bindparam("new_guests"),
        free_ram_mb=compute_nodes.c.memory_mb - sa.bindparam("new_memory", type_=sa.Integer),
        free_disk_gb=compute_nodes.c.local_gb - sa.bindparam("new_disk", type_=sa.Integer),
    )
)
_FAILED = (
    compute_nodes.update()
    .where(compute_nodes.c.host == sa.bindparam("of_host"))
    .values(failed_builds=compute_nodes.c.failed_builds + 1)
)
_BUILT = (
    compute_nodes.update()
    .where(compute_nodes.c.host == sa.bindparam("of_host"), compute_nodes.c.failed_builds > 0)
    .values(failed_builds=0)
)
_DELETE = compute_nodes.delete().where(compute_nodes.c.host == sa.bindparam("of_host"))


def set_usage(connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
    """Usage of several hosts: rows of host, vcpus_used, memory_mb_used, local_gb_used, running_vms."""
    if rows:
        values = [
            {
                "of_host": row["host"],
                "new_vcpus": row["vcpus_used"],
                "new_memory": row["memory_mb_used"],
                "new_disk": row["local_gb_used"],
                "new_guests": row["running_vms"],
            }
            for row in rows
        ]
        connection.execute(_USE, values)


def count_build(connection: Connection, host: str, *, failed: bool) -> None:
    """A build on the host failed (counted, for the BuildFailureWeigher) or succeeded (the count begins again)."""
    connection.execute(_FAILED if failed else _BUILT, {"of_host": host})


def delete_node(connection: Connection, host: str) -> bool:
    """Remove the node of a host; False when there was none."""
    return connection.execute(_DELETE, {"of_host": host}).rowcount > 0


_NAMED = _SELECT.where(compute_nodes.c.hypervisor_hostname == sa.bindparam("of_name"))


def named(connection: Connection, hostname: str) -> list[ComputeNode]:
    """The nodes of exactly this hypervisor_hostname."""
    return [_node(row) for row in connection.execute(_NAMED, {"of_name": hostname})]
