"""Agents and the hosts they bring: registration, beats, which agent serves a host, and the hosts' cell mappings.

A host is a service row (nova-compute) and a compute node row in its cell, and a mapping in the API database. Functions
that take a `Database` do one transaction of their own; those that take a connection join the caller's.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from kilonova.core import clock, ids, liveness
from kilonova.core.errors import Conflict
from kilonova.db.api_schema import host_mappings
from kilonova.db.cell_schema import agents, compute_nodes, services
from kilonova.sql.engine import Database

COMPUTE: Final = "nova-compute"
_NEW_DISABLED: Final = "New compute services are disabled by the option enable_new_services."
_CACHED_HOSTS: Final = 20_000
_CACHE_SECONDS: Final = 10.0


class AgentSuperseded(Conflict):
    code, message = "agent_superseded", "Another process beats as agent {agent}, with the newer epoch {epoch}."


@dataclass(frozen=True, slots=True)
class Beat:
    """known: the agent is on record. restarted: its epoch is new."""

    known: bool
    restarted: bool = False


@dataclass(frozen=True, slots=True)
class Registered:
    """What became of a batch. refused: hosts whose node is on record under another uuid, or uuid under another host,
    and hosts of another agent that is alive; those with that agent are in `others`.
    """

    new: tuple[str, ...]
    disabled: tuple[str, ...]
    refused: tuple[str, ...]
    others: tuple[tuple[str, str], ...] = ()


# -- agents

_BEAT = (
    agents.update()
    .where(agents.c.id == sa.bindparam("agent"), agents.c.epoch == sa.bindparam("seen"))
    .values(last_seen_up=sa.bindparam("now"), report_count=agents.c.report_count + 1)
)
_RENEW = (
    agents.update()
    .where(agents.c.id == sa.bindparam("agent"), agents.c.epoch < sa.bindparam("seen"))
    .values(last_seen_up=sa.bindparam("now"), epoch=sa.bindparam("seen"), report_count=agents.c.report_count + 1)
)
_VERSION = (
    agents.update()
    .where(agents.c.id == sa.bindparam("agent"), agents.c.epoch <= sa.bindparam("seen"))
    .values(last_seen_up=sa.bindparam("now"), epoch=sa.bindparam("seen"), version=sa.bindparam("release"))
)
_EPOCH = sa.select(agents.c.epoch).where(agents.c.id == sa.bindparam("agent"))
_SERVED = (services.c.agent == sa.bindparam("agent"), services.c.binary == COMPUTE, services.c.deleted.is_(False))
_COUNT = sa.select(sa.func.count()).select_from(services).where(*_SERVED)
_RELEASE = (
    services.update()
    .where(services.c.agent == sa.bindparam("of_agent"), services.c.deleted.is_(False))
    .values(agent=None, last_seen_up=sa.bindparam("now"))
)
_DISABLED = sa.select(services.c.host).where(*_SERVED, services.c.disabled.is_(True))


def agent_beat(db: Database, agent: str, epoch: int) -> Beat:
    """An agent is alive: one statement while it does not restart. AgentSuperseded when its epoch is an old one."""
    values = {"agent": agent, "seen": epoch, "now": clock.utcnow()}
    with db.write() as connection:
        if connection.execute(_BEAT, values).rowcount:
            return Beat(True)
        if connection.execute(_RENEW, values).rowcount:
            return Beat(True, True)
        newest = connection.execute(_EPOCH, {"agent": agent}).scalar()
    if newest is None:
        return Beat(False)
    raise AgentSuperseded(agent=agent, epoch=newest)


def disabled_hosts(connection: Connection, agent: str) -> tuple[str, ...]:
    """The hosts of an agent whose service is disabled."""
    return tuple(connection.execute(_DISABLED, {"agent": agent}).scalars())


def release_unless(db: Database, agent: str, count: int) -> bool:
    """Whether the agent has exactly `count` hosts on record; else all are taken from it, to be reported anew.

    A host that is not reported then counts as down, `service_down_time` from now.
    """
    with db.write() as connection:
        if connection.execute(_COUNT, {"agent": agent}).scalar_one() == count:
            return True
        connection.execute(_RELEASE, {"of_agent": agent, "now": clock.utcnow()})
        return False


def _keep_agent(connection: Connection, agent: str, epoch: int, version: int, now: datetime) -> None:
    values = {"agent": agent, "seen": epoch, "release": version, "now": now}
    if connection.execute(_VERSION, values).rowcount:
        return
    newest = connection.execute(_EPOCH, {"agent": agent}).scalar()
    if newest is not None:
        raise AgentSuperseded(agent=agent, epoch=newest)
    row = {"id": agent, "epoch": epoch, "version": version, "last_seen_up": now}
    connection.execute(agents.insert(), row)


# -- registration

_SERVICES_OF = (
    sa.select(
        services.c.id, services.c.host, services.c.agent, services.c.version, services.c.disabled,
        services.c.forced_down, agents.c.last_seen_up,
    )
    .select_from(services.outerjoin(agents, agents.c.id == services.c.agent))
    .where(
        services.c.host.in_(sa.bindparam("hosts", expanding=True)),
        services.c.binary == COMPUTE,
        services.c.deleted.is_(False),
    )
)  # fmt: skip
_NODES_OF = sa.select(compute_nodes.c.host, compute_nodes.c.uuid).where(
    sa.or_(
        compute_nodes.c.host.in_(sa.bindparam("hosts", expanding=True)),
        compute_nodes.c.uuid.in_(sa.bindparam("uuids", expanding=True)),
    )
)
_MOVE_SERVICE = (
    services.update()
    .where(services.c.id == sa.bindparam("row"))
    .values(agent=sa.bindparam("agent"), version=sa.bindparam("version"))
)
_REPORTED: Final = (
    "hypervisor_hostname", "hypervisor_type", "hypervisor_version", "host_ip", "vcpus", "memory_mb", "local_gb",
    "vcpus_used", "memory_mb_used", "local_gb_used", "free_ram_mb", "free_disk_gb", "disk_available_least",
    "running_vms", "cpu_info", "supported_instances", "stats", "cpu_allocation_ratio", "ram_allocation_ratio",
    "disk_allocation_ratio", "numa_topology", "pci_stats",
)  # fmt: skip
_UPDATE_NODE = (
    compute_nodes.update()
    .where(compute_nodes.c.host == sa.bindparam("of_host"))
    .values({name: sa.bindparam(f"new_{name}") for name in _REPORTED})
)


def register(
    db: Database, agent: str, epoch: int, version: int, nodes: Sequence[Mapping[str, Any]], *, enable: bool = True,
    down_time: float | None = None,
) -> Registered:  # fmt: skip
    """Bring the rows of an agent and of up to 500 of its hosts up to date, in one transaction.

    `nodes`: rows of compute_nodes with the keys host, uuid and those of `_REPORTED`. enable: whether the service of a
    new host starts enabled. down_time: seconds of silence after which another agent's hosts may be had; None is at
    once. AgentSuperseded.
    """
    for attempt in (1, 2):
        try:
            with db.write() as connection:
                return _register(connection, agent, epoch, version, nodes, enable, down_time)
        except sa.exc.IntegrityError:  # the same batch is being registered elsewhere: now its rows are there
            if attempt == 2:
                raise
    raise AssertionError("the second attempt returns or raises")


def _register(
    connection: Connection, agent: str, epoch: int, version: int, nodes: Sequence[Mapping[str, Any]], enable: bool,
    down_time: float | None,
) -> Registered:  # fmt: skip
    now = clock.utcnow()
    _keep_agent(connection, agent, epoch, version, now)
    names = [node["host"] for node in nodes]
    known = {row.host: row for row in connection.execute(_SERVICES_OF, {"hosts": names})}
    refused, there = _identities(connection, nodes)
    others = {host: str(row.agent) for host, row in known.items() if _is_anothers(row, agent, now, down_time)}
    refused |= others.keys()
    taken = [node for node in nodes if node["host"] not in refused]
    added = _keep_services(connection, agent, version, taken, known, enable)
    fresh = [dict(node) | {"metrics": "[]"} for node in taken if node["host"] not in there]
    old = [_changes(node) for node in taken if node["host"] in there]
    if fresh:
        connection.execute(compute_nodes.insert(), fresh)
    if old:
        connection.execute(_UPDATE_NODE, old)
    new = tuple(node["host"] for node in taken if node["host"] not in known or node["host"] not in there)
    disabled = [host for host, row in known.items() if row.disabled and host not in refused]
    disabled += [] if enable else added
    return Registered(new, tuple(disabled), tuple(sorted(refused)), tuple(sorted(others.items())))


def _is_anothers(row: Any, agent: str, now: datetime, down_time: float | None) -> bool:
    """Whether a host is served by another agent, one that is alive: two with the same host name are a mistake."""
    if down_time is None or row.agent in (None, agent):
        return False
    return liveness.is_up(row.last_seen_up, now, down_time, forced_down=bool(row.forced_down))


def _identities(connection: Connection, nodes: Sequence[Mapping[str, Any]]) -> tuple[set[str], set[str]]:
    """(hosts to refuse, hosts on record as they say): a node keeps its uuid and its host for life."""
    asked = {node["host"]: node["uuid"] for node in nodes}
    owners = {uuid: host for host, uuid in asked.items()}
    there = {}
    refused = set()
    for row in connection.execute(_NODES_OF, {"hosts": list(asked), "uuids": list(owners)}):
        if asked.get(row.host) == row.uuid:
            there[row.host] = row.uuid
        else:
            refused.add(row.host if row.host in asked else owners[row.uuid])
    return refused, set(there)


def _changes(node: Mapping[str, Any]) -> dict[str, Any]:
    return {"of_host": node["host"]} | {f"new_{name}": node.get(name) for name in _REPORTED}


def _keep_services(
    connection: Connection, agent: str, version: int, nodes: Iterable[Mapping[str, Any]], known: Mapping[str, Any],
    enable: bool,
) -> list[str]:  # fmt: skip
    """Add and change service rows as needed; the hosts whose rows were added."""
    fresh, moved = [], []
    for node in nodes:
        row = known.get(node["host"])
        if row is None:
            fresh.append(_service(node["host"], agent, version, enable))
        elif row.agent != agent or row.version != version:
            moved.append({"row": row.id, "agent": agent, "version": version})
    if fresh:
        connection.execute(services.insert(), fresh)
    if moved:
        connection.execute(_MOVE_SERVICE, moved)
    return [row["host"] for row in fresh]


def _service(host: str, agent: str, version: int, enable: bool) -> dict[str, Any]:
    return {
        "uuid": ids.new_uuid(),
        "host": host,
        "binary": COMPUTE,
        "topic": "compute",
        "agent": agent,
        "version": version,
        "disabled": not enable,
        "disabled_reason": None if enable else _NEW_DISABLED,
    }


# -- which agent serves a host

_AGENT_OF = (
    sa.select(agents.c.id, agents.c.epoch, agents.c.last_seen_up)
    .select_from(services.join(agents, agents.c.id == services.c.agent))
    .where(services.c.host == sa.bindparam("host"), services.c.binary == COMPUTE, services.c.deleted.is_(False))
)


class ServedBy(NamedTuple):
    """The agent process that serves a host: its bus address, its epoch, whether it is thought to be alive."""

    agent: str
    epoch: int
    up: bool


def agent_of(connection: Connection, host: str, down_time: float) -> ServedBy | None:
    """Who serves a host in this cell; None when nobody ever did. down_time in seconds."""
    row = connection.execute(_AGENT_OF, {"host": host}).first()
    if row is None:
        return None
    return ServedBy(row.id, row.epoch, liveness.is_up(row.last_seen_up, clock.utcnow(), down_time))


_HAS_AGENT = sa.select(agents.c.id).where(agents.c.id == sa.bindparam("of_agent"))


def has_agent(connection: Connection, agent: str) -> bool:
    """Whether an agent of that id has ever reported in this cell."""
    return connection.execute(_HAS_AGENT, {"of_agent": agent}).first() is not None


class AgentDirectory:
    """`agent_of` over the cells of a process, with a cache of some seconds. Safe from any thread."""

    def __init__(self, cells: Callable[[], Iterable[Database]], down_time: float) -> None:
        self._cells, self._down_time = cells, down_time
        self._lock = threading.Lock()
        self._known: dict[str, tuple[ServedBy, float]] = {}

    def agent_of(self, host: str) -> ServedBy | None:
        """Who serves a host; None when nobody ever did."""
        now = clock.monotonic()
        found = self._known.get(host)
        if found is not None and found[1] > now:
            return found[0]
        served = self._look_up(host)
        if served is not None:
            with self._lock:
                if len(self._known) >= _CACHED_HOSTS:
                    self._known.clear()
                self._known[host] = (served, now + _CACHE_SECONDS)
        return served

    def forget(self) -> None:
        """Read everything anew: an agent has restarted, or a message could not be delivered."""
        with self._lock:
            self._known.clear()

    def _look_up(self, host: str) -> ServedBy | None:
        for cell in self._cells():
            with cell.read() as connection:
                served = agent_of(connection, host, self._down_time)
            if served is not None:
                return served
        return None


# -- host mappings (API database)

_MAPPED = sa.select(host_mappings.c.host, host_mappings.c.cell_uuid).where(
    host_mappings.c.host.in_(sa.bindparam("hosts", expanding=True))
)
_MAPPINGS = sa.select(host_mappings.c.host, host_mappings.c.cell_uuid).order_by(host_mappings.c.id)
_UNMAP = host_mappings.delete().where(host_mappings.c.host == sa.bindparam("of_host"))
_CELL_HOSTS = (
    sa.select(compute_nodes.c.host)
    .where(compute_nodes.c.id > sa.bindparam("after"))
    .order_by(compute_nodes.c.id)
)


def cells_of(connection: Connection, hosts: Sequence[str]) -> dict[str, str]:
    """The cell's uuid of each of these hosts that is mapped."""
    return {row.host: row.cell_uuid for row in connection.execute(_MAPPED, {"hosts": list(hosts)})}


def list_mappings(connection: Connection) -> list[tuple[str, str]]:
    """All (host, cell uuid), in the order of discovery."""
    return [(row.host, row.cell_uuid) for row in connection.execute(_MAPPINGS)]


def map_hosts(api_db: Database, cell_uuid: str, hosts: Sequence[str]) -> tuple[str, ...]:
    """Map those of up to 500 hosts to the cell that are not mapped; answers them."""
    for attempt in (1, 2):
        try:
            with api_db.write() as connection:
                known = cells_of(connection, hosts)
                new = tuple(host for host in hosts if host not in known)
                if new:
                    connection.execute(host_mappings.insert(), [{"host": host, "cell_uuid": cell_uuid} for host in new])
                return new
        except sa.exc.IntegrityError:  # somebody else is discovering the same hosts
            if attempt == 2:
                raise
    raise AssertionError("the second attempt returns or raises")


def unmap_host(connection: Connection, host: str) -> bool:
    """Remove a host's mapping; False when there was none."""
    return connection.execute(_UNMAP, {"of_host": host}).rowcount > 0


def hosts_of_cell(connection: Connection) -> list[str]:
    """Hosts with a compute node in this cell, in the order of their arrival: what discovery compares."""
    return list(connection.execute(_CELL_HOSTS, {"after": 0}).scalars())
