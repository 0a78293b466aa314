"""Hosts as the pipeline sees them: an immutable snapshot of all, and one state per candidate of a request.

A state joins what the tables know of a hypervisor with the usage that Placement's answer carries, which is fresher
than the compute node's row. It must not know databases; `host_store` makes snapshots.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from functools import cached_property

import msgspec
from msgspec.structs import replace

from kilonova.clients.placement import ProviderUsage
from kilonova.core.host_fit import NO_WISHES, Fitted, Room, Wanted, fit
from kilonova.core.numa.fit import Misfit
from kilonova.core.numa.topology import Limits
from kilonova.core.numa.wire import read_host
from kilonova.core.pci.placement import addresses_of
from kilonova.core.pci.pools import NoDevice
from kilonova.core.pci.pools import from_text as read_pools
from kilonova.core.request_spec import FlavorSpec
from kilonova.db.queries.host_states import AggregateRow, HostRow


class HostState(msgspec.Struct, frozen=True, gc=False):
    """One hypervisor for one request. Memory and disk in MiB; free values may be negative after consumption.

    left: cells and devices after what was consumed, None while that is nothing. offers: per allocation candidate the
    providers of its PCI devices, by request; empty where devices are no matter of Placement.
    """

    row: HostRow
    aggregates: tuple[AggregateRow, ...]
    alive: bool
    free_ram_mb: int
    free_disk_mb: int
    vcpus_total: int
    vcpus_used: int
    num_instances: int
    num_io_ops: int
    failed_builds: int
    left: Room | None = None
    offers: tuple[Mapping[str, list[str]], ...] = ()

    @property
    def uuid(self) -> str:
        """The compute node's and the root provider's uuid."""
        return self.row.uuid

    @property
    def host(self) -> str:
        """The host's name (of the compute service)."""
        return self.row.host

    @property
    def node(self) -> str:
        """The hypervisor's name."""
        return self.row.node

    @property
    def cell_uuid(self) -> str:
        """The cell it is in."""
        return self.row.cell_uuid

    @property
    def limits(self) -> Limits:
        """How far its NUMA cells may be over-committed."""
        return Limits(self.row.cpu_allocation_ratio, self.row.ram_allocation_ratio)

    @property
    def room(self) -> Room:
        """What it has left of NUMA cells and devices; read from the row when somebody asks."""
        if self.left is not None:
            return self.left
        return room_of(self.row.numa_topology, self.row.pci_stats)

    def metadata(self, key: str) -> set[str]:
        """The raw values of a key over the host's aggregates, duplicates collapsed."""
        return {row.metadata[key] for row in self.aggregates if key in row.metadata}

    def merged_metadata(self, key: str) -> set[str]:
        """The same, each value split on commas and trimmed."""
        return {part.strip() for value in self.metadata(key) for part in value.split(",")}


_NO_ROOM = Room()


def room_of(topology: str | None, pools: str | None) -> Room:
    """The room that the texts of a row tell of."""
    if topology is None and pools is None:
        return _NO_ROOM
    return Room(None if topology is None else read_host(topology), () if pools is None else read_pools(pools))


class Consumed(msgspec.Struct, frozen=True):
    """What was claimed on a host and its row does not show yet; `at` is when the last claim was.

    guests: those that want NUMA cells or devices.
    """

    at: datetime
    servers: int = 0
    memory_mb: int = 0
    disk_mb: int = 0
    vcpus: int = 0
    guests: tuple[Wanted, ...] = ()

    def plus(self, flavor: FlavorSpec, at: datetime, guest: Wanted = NO_WISHES) -> Consumed:
        """One more server of this flavor."""
        return Consumed(
            at,
            self.servers + 1,
            self.memory_mb + flavor.memory_mb,
            self.disk_mb + _disk_mb(flavor),
            self.vcpus + flavor.vcpus,
            (*self.guests, guest) if guest else self.guests,
        )


class Aggregates:
    """All aggregates, oldest first. by_host: those of each host, one tuple for all hosts that are in the same ones.
    keys: every metadata key in use.
    """

    def __init__(self, rows: Iterable[AggregateRow] = ()) -> None:
        self.rows = tuple(rows)
        places: dict[str, list[int]] = {}
        for place, row in enumerate(self.rows):
            for host in row.hosts:
                places.setdefault(host, []).append(place)
        shared: dict[tuple[int, ...], tuple[AggregateRow, ...]] = {}
        self.by_host: Mapping[str, tuple[AggregateRow, ...]] = {
            host: shared.setdefault(tuple(found), tuple([self.rows[place] for place in found]))
            for host, found in places.items()
        }
        self.keys = frozenset(key for row in self.rows for key in row.metadata)


class Snapshot:
    """All hosts and aggregates at one moment; never changed after it is made.

    hosts: by provider uuid. seen: when each agent last beat.
    """

    def __init__(self, hosts: Mapping[str, HostRow], seen: Mapping[str, datetime], aggregates: Aggregates) -> None:
        self.hosts = hosts
        self.seen = seen
        self.aggregates = aggregates

    @cached_property
    def _by_name(self) -> dict[str, list[HostRow]]:
        found: dict[str, list[HostRow]] = {}
        for row in self.hosts.values():
            found.setdefault(row.host.lower(), []).append(row)
        return found

    @cached_property
    def _by_node(self) -> dict[str, list[HostRow]]:
        found: dict[str, list[HostRow]] = {}
        for row in self.hosts.values():
            found.setdefault(row.node, []).append(row)
        return found

    def nodes(self, host: str | None, node: str | None, cell: str | None = None) -> list[HostRow]:
        """The hypervisors with this host name (any case), node name (exact) and cell, each where given."""
        if host:
            found = [row for row in self._by_name.get(host.lower(), ()) if not node or row.node == node]
        else:
            found = list(self._by_node.get(node or "", ()))
        return [row for row in found if not cell or row.cell_uuid == cell]


def states_of(
    snapshot: Snapshot,
    usages: Mapping[str, Mapping[str, ProviderUsage]],
    consumed: Mapping[str, Consumed],
    is_fresh: Callable[[datetime | None], bool],
) -> list[HostState]:
    """The states of the providers in `usages` that are hypervisors of ours, in that order.

    usages: by provider uuid and resource class. is_fresh: whether a last beat says that it lives.
    """
    found = []
    rows, seen, by_host = snapshot.hosts, snapshot.seen, snapshot.aggregates.by_host
    fresh: dict[datetime | None, bool] = {}
    for uuid, usage in usages.items():
        row = rows.get(uuid)
        if row is None:
            continue
        last = seen.get(row.agent, row.last_seen_up) if row.agent is not None else row.last_seen_up
        alive = fresh.get(last)
        if alive is None:
            alive = fresh[last] = is_fresh(last)
        state = _state(row, usage, by_host.get(row.host, ()), alive and not row.forced_down)
        if uuid in consumed:
            state = _less(state, usage, consumed[uuid])
        found.append(state)
    return found


def _state(
    row: HostRow, usage: Mapping[str, ProviderUsage], aggregates: tuple[AggregateRow, ...], alive: bool
) -> HostState:
    """The state as the row and Placement have it. Made for each host of an answer, so it calls as little as it can."""
    stats = row.stats
    servers, io_ops, failed = row.running_vms, row.current_workload, row.failed_builds
    if stats:
        servers, io_ops = _count(stats.get("num_instances"), servers), _count(stats.get("io_workload"), io_ops)
        failed = max(failed, _count(stats.get("failed_builds"), 0))
    memory, disk, cpus, pinned = usage.get("MEMORY_MB"), usage.get("DISK_GB"), usage.get("VCPU"), usage.get("PCPU")
    free_ram = row.free_ram_mb if memory is None else _free(memory, row.ram_allocation_ratio)
    least = row.disk_available_least
    if disk is not None:
        free_disk = _free(disk, row.disk_allocation_ratio) * 1024
        if least is not None and least * 1024 < free_disk:
            free_disk = least * 1024
    else:
        free_disk = (row.free_disk_gb if least is None or least > row.free_disk_gb else least) * 1024
    if cpus is None and pinned is None:
        used = row.vcpus_used
    else:
        used = (0 if cpus is None else cpus.used) + (0 if pinned is None else pinned.used)
    return HostState(
        row, aggregates, alive, free_ram, free_disk, row.vcpus, used, servers, io_ops, failed if failed > 0 else 0
    )


def _less(state: HostState, usage: Mapping[str, ProviderUsage], consumed: Consumed) -> HostState:
    """The state without what was claimed since the row was written, as far as Placement does not show it already."""
    row = state.row
    if consumed.at < row.changed_at:
        return state
    reported = "VCPU" in usage or "PCPU" in usage
    state = replace(
        state,
        free_ram_mb=state.free_ram_mb - (0 if "MEMORY_MB" in usage else consumed.memory_mb),
        free_disk_mb=state.free_disk_mb - (0 if "DISK_GB" in usage else consumed.disk_mb),
        vcpus_used=state.vcpus_used + (0 if reported else consumed.vcpus),
        num_instances=state.num_instances + consumed.servers,
        num_io_ops=state.num_io_ops + consumed.servers,
    )
    for guest in consumed.guests:
        state = _place(state, guest)
    return state


def _count(stat: object, otherwise: int) -> int:
    """A number from a driver's free-form statistics; `otherwise` when it gives none that can be read."""
    return int(stat) if isinstance(stat, int) or (isinstance(stat, str) and stat.isdigit()) else otherwise


def _free(usage: ProviderUsage, ratio: float) -> int:
    """Real room: capacity without the over-commitment ratio, less what is used."""
    if ratio == 1.0 or ratio <= 0:
        return usage.capacity - usage.used
    return int(usage.capacity / ratio) - usage.used


def consume(state: HostState, flavor: FlavorSpec, guest: Wanted = NO_WISHES) -> HostState:
    """The state after one server of this flavor was placed there (a volume's root disk is subtracted as well).

    guest: what it wants of NUMA cells and devices.
    """
    return shift(_place(state, guest), flavor, 1)


def _place(state: HostState, guest: Wanted) -> HostState:
    """The state with the guest in its cells, with its devices; as it is where the guest does not fit or wants none."""
    if not guest:
        return state
    found, _ = fit_on(state, guest)
    return replace(state, left=found.left) if isinstance(found, Fitted) else state


def fit_on(state: HostState, guest: Wanted, *, pack: bool = False) -> tuple[Fitted | Misfit | NoDevice, int]:
    """The guest's place on the host as it is now, or why it has none; and by which offer, the first that fits."""
    room = state.room
    if not state.offers:
        return fit(room, guest, state.limits, pack=pack), 0
    for number, offer in enumerate(state.offers):
        cards = addresses_of(state.uuid, offer, room.pools)
        found = fit(room, guest, state.limits, providers=cards, pack=pack)
        if isinstance(found, Fitted):
            return found, number
    return found, 0


def shift(state: HostState, flavor: FlavorSpec, servers: int) -> HostState:
    """The state with the numbers of so many servers of this flavor more, or less."""
    return replace(
        state,
        free_ram_mb=state.free_ram_mb - servers * flavor.memory_mb,
        free_disk_mb=state.free_disk_mb - servers * _disk_mb(flavor),
        vcpus_used=state.vcpus_used + servers * flavor.vcpus,
        num_instances=state.num_instances + servers,
        num_io_ops=state.num_io_ops + servers,
    )


def names(states: Iterable[HostState], limit: int = 20) -> str:
    """`(host, node), …` for a log line, cut after `limit`."""
    listed = list(states)
    shown = ", ".join(f"({state.host}, {state.node})" for state in listed[:limit])
    return f"[{shown}{f', … {len(listed) - limit} more' if len(listed) > limit else ''}]"


def _disk_mb(flavor: FlavorSpec) -> int:
    return (flavor.root_gb + flavor.ephemeral_gb) * 1024
