"""Whether a host has the cells and the devices that a guest wants, and what it has left: NUMA and PCI together.

The scheduler's filters and the agent's claim both ask here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kilonova.core.numa import fit as numa
from kilonova.core.numa.fit import Misfit
from kilonova.core.numa.topology import GuestTopology, HostCell, HostTopology, Limits
from kilonova.core.numa.wanted import wanted
from kilonova.core.pci import pools as pci
from kilonova.core.pci.pools import Near, NoDevice, Pool, Pools
from kilonova.core.pci.requests import PciRequest
from kilonova.core.request_spec import FlavorSpec

NO_TOPOLOGY = Misfit("it reports no NUMA topology, and the guest has one of {} cells", ())


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a guest wants of cells, devices and networks near them."""

    topology: GuestTopology | None = None
    requests: tuple[PciRequest, ...] = ()
    physnets: frozenset[str] = frozenset()
    tunneled: bool = False

    def __bool__(self) -> bool:
        return self.topology is not None or bool(self.requests)


NO_WISHES = Wanted()


@dataclass(frozen=True, slots=True)
class Room:
    """What a host has left of cells (None: it reports none) and devices."""

    topology: HostTopology | None = None
    pools: Pools = ()


@dataclass(frozen=True, slots=True)
class Fitted:
    """A guest in its place: its topology with host CPUs, per request which kinds of devices, and the room after it."""

    topology: GuestTopology | None
    devices: Sequence[Sequence[tuple[Pool, int]]]
    left: Room


def wanted_of(
    flavor: FlavorSpec, properties: Mapping[str, object], requests: tuple[PciRequest, ...] = ()
) -> Wanted:  # fmt: skip
    """What a flavor and an image's properties want, beside these requests for devices. TopologyInvalid."""
    return Wanted(wanted(flavor.vcpus, flavor.memory_mb, flavor.extra_specs, properties), requests)


def fit(
    room: Room, guest: Wanted, limits: Limits | None = None, *,
    providers: Mapping[str, Sequence[str]] | None = None, pack: bool = False,
) -> Fitted | Misfit | NoDevice:  # fmt: skip
    """The guest's place on the host, or why it has none.

    limits: see `numa.fit`. providers: per request id the providers whose devices it must take. pack: fill cells that
    are in use first.
    """
    if guest.topology is None:
        taken = pci.take(room.pools, guest.requests, None, providers)
        if isinstance(taken, NoDevice):
            return taken
        return Fitted(None, taken[1], Room(room.topology, taken[0]))
    host = room.topology
    if host is None:
        return Misfit(NO_TOPOLOGY.reason, (len(guest.topology.cells),))
    lacking: list[NoDevice] = []

    def accepts(cells: Sequence[HostCell]) -> bool:
        if not _networks(host, cells, guest):
            return False
        taken = pci.take(room.pools, guest.requests, near(host, [cell.id for cell in cells]), providers)
        if isinstance(taken, NoDevice):
            lacking.append(taken)
        return not isinstance(taken, NoDevice)

    special = bool(guest.requests or guest.physnets or guest.tunneled)
    beside = (pool.numa_node for pool in room.pools)
    avoid = frozenset() if guest.requests else frozenset(cell for cell in beside if cell is not None)
    found = numa.fit(host, guest.topology, limits, accepts=accepts if special else None, avoid=avoid, pack=pack)
    if isinstance(found, Misfit):
        return lacking[0] if lacking else found
    taken = pci.take(room.pools, guest.requests, near(host, [cell.host_cell for cell in found.cells]), providers)
    if isinstance(taken, NoDevice):
        return taken
    return Fitted(found, taken[1], Room(numa.take(host, found), taken[0]))


def near(host: HostTopology, cells: Sequence[int | None]) -> Near:
    """These cells, and those that share a socket with one of them."""
    chosen = frozenset(number for number in cells if number is not None)
    sockets = {cell.socket for cell in host.cells if cell.id in chosen} - {None}
    return Near(chosen, frozenset(cell.id for cell in host.cells if cell.socket in sockets))


def _networks(host: HostTopology, chosen: Sequence[HostCell], guest: Wanted) -> bool:
    """A network whose card is at some cell must be at one of the guest's; one that is at none does not matter."""
    for network in guest.physnets:
        somewhere = any(network in cell.physnets for cell in host.cells)
        if somewhere and not any(network in cell.physnets for cell in chosen):
            return False
    bound = guest.tunneled and any(cell.tunneled for cell in host.cells)
    return not bound or any(cell.tunneled for cell in chosen)
