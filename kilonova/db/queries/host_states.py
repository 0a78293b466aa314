"""What the scheduler reads: hypervisors with their service and agent, aggregates, members of a server group.

Statements are built once. Each function takes the database it reads and holds no transaction afterwards. It must not
know how hosts are chosen.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any

import msgspec
import sqlalchemy as sa

from kilonova.core import json
from kilonova.db.api_schema import (
    aggregate_hosts,
    aggregate_metadata,
    aggregates,
    cell_mappings,
    instance_group_member,
    instance_groups,
)
from kilonova.db.cell_schema import agents, compute_nodes, instances, services
from kilonova.sql.engine import Database

CELL0 = "00000000-0000-0000-0000-000000000000"
CHUNK = 500  # values in one IN list; SQLite of old builds takes 999 variables


class HostRow(msgspec.Struct, frozen=True):
    """One hypervisor as the tables have it. Memory in MiB, disk in GiB; uuid is also its resource provider's.

    documents (cpu_info, stats …) may be shared between rows and are never to be changed. numa_topology and pci_stats
    are texts, read only for requests that want them (`core.numa.wire`, `core.pci.pools`).
    """

    uuid: str
    cell_uuid: str
    id: int
    host: str
    node: str
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
    cpu_info: Any
    supported_instances: tuple[tuple[str, str, str], ...]
    stats: dict[str, Any]
    metrics: Any
    cpu_allocation_ratio: float
    ram_allocation_ratio: float
    disk_allocation_ratio: float
    service_disabled: bool
    service_disabled_reason: str | None
    forced_down: bool
    agent: str | None
    last_seen_up: datetime | None
    changed_at: datetime
    numa_topology: str | None = None
    pci_stats: str | None = None


class AggregateRow(msgspec.Struct, frozen=True):
    """One aggregate with its hosts and metadata."""

    id: int
    uuid: str
    name: str
    hosts: frozenset[str]
    metadata: dict[str, str]


_NODE = compute_nodes.c
_SERVICE = services.c
_node_changed = sa.func.coalesce(_NODE.updated_at, _NODE.created_at)
_service_changed = sa.func.coalesce(_SERVICE.updated_at, _SERVICE.created_at)
_changed_at = sa.case((_node_changed >= _service_changed, _node_changed), else_=_service_changed)
_hosts = (
    sa.select(
        _NODE.uuid,
        _NODE.id,
        _NODE.host,
        _NODE.hypervisor_hostname,
        _NODE.hypervisor_type,
        _NODE.hypervisor_version,
        _NODE.host_ip,
        _NODE.vcpus,
        _NODE.memory_mb,
        _NODE.local_gb,
        _NODE.vcpus_used,
        _NODE.memory_mb_used,
        _NODE.local_gb_used,
        _NODE.free_ram_mb,
        _NODE.free_disk_gb,
        _NODE.disk_available_least,
        _NODE.current_workload,
        _NODE.running_vms,
        _NODE.failed_builds,
        _NODE.cpu_info,
        _NODE.supported_instances,
        _NODE.stats,
        _NODE.metrics,
        _NODE.cpu_allocation_ratio,
        _NODE.ram_allocation_ratio,
        _NODE.disk_allocation_ratio,
        _SERVICE.disabled,
        _SERVICE.disabled_reason,
        _SERVICE.forced_down,
        _SERVICE.agent,
        _SERVICE.last_seen_up,
        _changed_at.label("changed_at"),
        _NODE.numa_topology,
        _NODE.pci_stats,
    )
    .select_from(
        compute_nodes.join(
            services,
            sa.and_(
                _SERVICE.host == _NODE.host, _SERVICE.binary == "nova-compute", _SERVICE.deleted == sa.false()
            ),
        )
    )
    .order_by(_NODE.id)
)  # fmt: skip
_hosts_since = _hosts.where(_changed_at >= sa.bindparam("since"))
_hosts_named = _hosts.where(_NODE.host.in_(sa.bindparam("hosts", expanding=True)))
_serviceless = (
    sa.select(_NODE.host, _NODE.hypervisor_hostname)
    .where(
        ~sa.exists().where(
            _SERVICE.host == _NODE.host, _SERVICE.binary == "nova-compute", _SERVICE.deleted == sa.false()
        )
    )
    .order_by(_NODE.id)
)
_agents = sa.select(agents.c.id, agents.c.last_seen_up)


def _mark(table: sa.Table, *where: sa.ColumnElement[bool]) -> list[Any]:
    return [
        sa.select(sa.func.count()).select_from(table).where(*where).scalar_subquery(),
        sa.select(sa.func.max(table.c.created_at)).where(*where).scalar_subquery(),
        sa.select(sa.func.max(table.c.updated_at)).where(*where).scalar_subquery(),
    ]


_host_mark = sa.select(
    *_mark(compute_nodes), *_mark(services, _SERVICE.binary == "nova-compute", _SERVICE.deleted == sa.false())
)
_aggregate_mark = sa.select(*_mark(aggregates), *_mark(aggregate_hosts), *_mark(aggregate_metadata))
_cells = (
    sa.select(cell_mappings.c.uuid)
    .where(cell_mappings.c.disabled == sa.false(), cell_mappings.c.uuid != CELL0)
    .order_by(cell_mappings.c.id)
)
_aggregates = sa.select(aggregates.c.id, aggregates.c.uuid, aggregates.c.name).order_by(aggregates.c.id)
_aggregate_hosts = sa.select(aggregate_hosts.c.aggregate_id, aggregate_hosts.c.host)
_aggregate_metadata = sa.select(
    aggregate_metadata.c.aggregate_id, aggregate_metadata.c.key, aggregate_metadata.c.value
).order_by(aggregate_metadata.c.id)
_members = sa.select(instances.c.uuid, instances.c.host, instances.c.deleted).where(
    instances.c.uuid.in_(sa.bindparam("uuids", expanding=True))
)
_group_members = (
    sa.select(instance_group_member.c.instance_uuid)
    .select_from(
        instance_group_member.join(instance_groups, instance_groups.c.id == instance_group_member.c.group_id)
    )
    .where(instance_groups.c.uuid == sa.bindparam("group"))
)  # fmt: skip

Mark = tuple[Any, ...]


def enabled_cells(api: Database) -> tuple[str, ...]:
    """Uuids of the cells that take new servers, cell0 left out."""
    with api.read() as connection:
        return tuple(connection.execute(_cells).scalars())


def host_mark(cell: Database) -> Mark:
    """Differs from an earlier answer when a hypervisor or a compute service was added, changed or removed."""
    with cell.read() as connection:
        return tuple(connection.execute(_host_mark).one())


def aggregate_mark(api: Database) -> Mark:
    """Differs from an earlier answer when an aggregate, its hosts or its metadata changed."""
    with api.read() as connection:
        return tuple(connection.execute(_aggregate_mark).one())


def all_hosts(cell: Database, cell_uuid: str) -> list[HostRow]:
    """Every hypervisor that has a compute service."""
    with cell.read() as connection:
        return [_row(cell_uuid, row) for row in connection.execute(_hosts)]


def hosts_since(cell: Database, cell_uuid: str, since: datetime) -> list[HostRow]:
    """Hypervisors of which the node or the service was written at `since` or later."""
    with cell.read() as connection:
        return [_row(cell_uuid, row) for row in connection.execute(_hosts_since, {"since": since})]


def hosts_named(cell: Database, cell_uuid: str, hosts: Iterable[str]) -> list[HostRow]:
    """The hypervisors of these hosts; a host without one, or without a service, is left out."""
    names = sorted(set(hosts))
    with cell.read() as connection:
        return [
            _row(cell_uuid, row)
            for start in range(0, len(names), CHUNK)
            for row in connection.execute(_hosts_named, {"hosts": names[start : start + CHUNK]})
        ]


def without_service(cell: Database) -> list[tuple[str, str]]:
    """Hypervisors, as (host, node), of which the compute service has no row: they are in none of these answers."""
    with cell.read() as connection:
        return [(host, node) for host, node in connection.execute(_serviceless)]


def agents_seen(cell: Database) -> dict[str, datetime]:
    """When each agent process last beat."""
    with cell.read() as connection:
        return {row.id: row.last_seen_up for row in connection.execute(_agents)}


def load_aggregates(api: Database) -> tuple[AggregateRow, ...]:
    """All aggregates, oldest first."""
    hosts: dict[int, set[str]] = {}
    metadata: dict[int, dict[str, str]] = {}
    with api.read() as connection:
        for aggregate, host in connection.execute(_aggregate_hosts):
            hosts.setdefault(aggregate, set()).add(host)
        for aggregate, key, value in connection.execute(_aggregate_metadata):
            metadata.setdefault(aggregate, {})[key] = value
        return tuple(
            AggregateRow(id_, uuid, name, frozenset(hosts.get(id_, ())), metadata.get(id_, {}))
            for id_, uuid, name in connection.execute(_aggregates)
        )


def group_members(api: Database, group: str) -> list[str]:
    """The servers that belong to the group at this moment."""
    with api.read() as connection:
        return list(connection.execute(_group_members, {"group": group}).scalars())


def member_hosts(cell: Database, uuids: Sequence[str]) -> dict[str, str | None]:
    """Which host each of these servers is on, for those that are on one in this cell; None for a deleted server."""
    found: dict[str, str | None] = {}
    with cell.read() as connection:
        for start in range(0, len(uuids), CHUNK):
            for uuid, host, deleted in connection.execute(_members, {"uuids": list(uuids[start : start + CHUNK])}):
                if deleted or host is not None:
                    found[uuid] = None if deleted else host
    return found


def _row(cell_uuid: str, row: Any) -> HostRow:
    (
        uuid, id_, host, node, kind, version, ip, vcpus, memory, disk, vcpus_used, memory_used, disk_used, free_ram,
        free_disk, least, workload, running, failed, cpu_info, supported, stats, metrics, cpu, ram, disk_ratio,
        disabled, reason, forced_down, agent, seen, changed_at, numa_topology, pci_stats,
    ) = row  # fmt: skip
    return HostRow(
        uuid, cell_uuid, id_, host, node, kind, version, ip, vcpus, memory, disk, vcpus_used, memory_used, disk_used,
        free_ram, free_disk, least, workload, running, failed, _document(cpu_info), _triples(supported),
        _mapping(stats), _document(metrics), cpu, ram, disk_ratio, disabled, reason, forced_down, agent, seen,
        changed_at, numa_topology and sys.intern(numa_topology), pci_stats and sys.intern(pci_stats),
    )  # fmt: skip


@lru_cache(maxsize=4096)
def _document(text: str | None) -> Any:
    """A JSON column. Hypervisors of one kind share one text, so parsing is remembered."""
    try:
        return json.loads(text) if text else {}
    except ValueError:
        return {}


def _mapping(text: str | None) -> dict[str, Any]:
    found = _document(text)
    return found if isinstance(found, dict) else {}


@lru_cache(maxsize=256)
def _triples(text: str | None) -> tuple[tuple[str, str, str], ...]:
    found = _document(text)
    rows = found if isinstance(found, list) else []
    return tuple((str(row[0]), str(row[1]), str(row[2])) for row in rows if isinstance(row, list) and len(row) == 3)
