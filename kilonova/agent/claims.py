"""Which host CPUs, memory pages and devices each guest has; a claim that does not fit sends the build elsewhere.

The driver's guests are the only memory: what they hold is what is claimed, so nothing can be left over, and a restart
changes nothing. Between a claim and its guest's being there it is kept here, for builds at the same time.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import msgspec

from kilonova.agent import hardware
from kilonova.agent.settings import AgentSettings
from kilonova.bus.calls import GuestSpec
from kilonova.core.errors import KilonovaError
from kilonova.core.host_fit import Fitted, Room, Wanted, fit
from kilonova.core.numa.fit import used_by
from kilonova.core.numa.topology import HostTopology, Limits
from kilonova.core.numa.wanted import wanted
from kilonova.core.numa.wire import guest_text, host_text, read_guest
from kilonova.core.pci import pools as pci
from kilonova.core.pci.devices import Offered
from kilonova.core.pci.placement import addresses_of
from kilonova.virt.driver import Driver, Held, Inventory, Pinning, need


class ClaimRefused(KilonovaError):
    """The host has no place for the guest's NUMA cells or devices any more; another host may."""

    code, message = "claim_refused", "Host {host} has no place for the server: {reason}."


@dataclass(frozen=True, slots=True)
class _Hardware:
    """What a host has when it has no guest."""

    topology: HostTopology | None
    devices: tuple[Offered, ...]


@dataclass(frozen=True, slots=True)
class Left:
    """What a host has left, as it is reported: texts of `core.numa.wire` and `core.pci.pools`."""

    numa_topology: str | None = None
    pci_stats: str | None = None


NOTHING = Left()


class Claims:
    """Safe from any thread."""

    def __init__(self, driver: Driver, settings: AgentSettings) -> None:
        self._driver, self._settings = driver, settings
        self._inventory = need(driver, Inventory)
        self._lock = threading.Lock()
        self._under_way: dict[str, dict[str, Held]] = {}
        self._known: dict[tuple[object, ...], _Hardware] = {}

    def matters(self, host: str) -> bool:
        """Whether guests can have something of the host for themselves."""
        known = self._hardware(host)
        return known.topology is not None or bool(known.devices)

    @contextmanager
    def made(
        self, host: str, guest: GuestSpec, limits: Mapping[str, float], providers: Mapping[str, Sequence[str]] = {}
    ) -> Iterator[GuestSpec]:
        """The guest with what it gets for itself, kept for it until the block has made it. ClaimRefused.

        limits and providers: as in `Spawn`.
        """
        wishes = _wanted(guest)
        if not wishes:
            yield guest
            return
        with self._lock:
            held = self._claimed(host, guest.uuid, wishes, limits, providers)
            self._under_way.setdefault(host, {})[guest.uuid] = held
        try:
            yield msgspec.structs.replace(guest, numa_topology=held.numa_topology, pci_devices=held.pci_devices)
        finally:
            with self._lock:
                del self._under_way[host][guest.uuid]

    def left(self, hosts: Sequence[str]) -> dict[str, Left]:
        """What hosts have left; those of which nothing can be had are left out."""
        asked = [host for host in hosts if self.matters(host)]
        if not asked:
            return {}
        held = need(self._driver, Pinning).held(asked)
        return {host: self._left(self._hardware(host), held.get(host, ())) for host in asked}

    def _claimed(
        self, host: str, server: str, wishes: Wanted, limits: Mapping[str, float],
        providers: Mapping[str, Sequence[str]],
    ) -> Held:  # fmt: skip
        there = {row.server: row for row in need(self._driver, Pinning).held([host]).get(host, ())}
        if server in there:  # the verb is repeated, and its guest is there
            return there[server]
        others = [*there.values(), *self._under_way.get(host, {}).values()]
        known = self._hardware(host)
        ratios = Limits(**limits) if limits else None
        pack = self._settings.packing_host_numa_cells_allocation_strategy
        room = self._room(known, others)
        cards = addresses_of(self._inventory.facts(host).uuid, providers, room.pools) if providers else None
        found = fit(room, wishes, ratios, providers=cards, pack=pack)
        if not isinstance(found, Fitted):
            raise ClaimRefused(host=host, reason=str(found))
        topology = "" if found.topology is None else guest_text(found.topology)
        return Held(server, topology, self._chosen(known.devices, found, others))

    def _hardware(self, host: str) -> _Hardware:
        """Hosts of one process are mostly of one kind, so what was computed for one is kept for all alike."""
        facts = self._inventory.facts(host)
        kind = (facts.vcpus, facts.cells, facts.devices)
        known = self._known.get(kind)
        if known is None:
            known = _Hardware(hardware.topology(facts, self._settings), hardware.devices(facts, self._settings))
            self._known[kind] = known
        return known

    def _room(self, known: _Hardware, held: Sequence[Held]) -> Room:
        topology = known.topology
        if topology is not None:
            topology = used_by(topology, (read_guest(row.numa_topology) for row in held if row.numa_topology))
        providers = self._settings.report_in_placement
        return Room(topology, pci.pools_of(known.devices, _taken(held), providers=providers))

    def _left(self, known: _Hardware, held: Sequence[Held]) -> Left:
        room = self._room(known, held)
        topology = None if room.topology is None else host_text(room.topology)
        return Left(topology, pci.to_text(room.pools) if known.devices else None)

    def _chosen(self, devices: Sequence[Offered], found: Fitted, others: Sequence[Held]) -> tuple[str, ...]:
        """Addresses of devices of the kinds that were picked, lowest first."""
        families, providers = pci.families_of(devices), self._settings.report_in_placement
        chosen: list[str] = []
        for picks in found.devices:
            for kind, count in picks:
                free = pci.free(devices, [*_taken(others), *chosen])
                alike = [row for row in free if pci.kind_of(row, families, providers=providers) == kind]
                chosen += [row.device.address for row in alike[:count]]
        return tuple(chosen)


def _wanted(guest: GuestSpec) -> Wanted:
    extra_specs = guest.flavor.get("extra_specs") or {}
    topology = wanted(guest.vcpus, guest.memory_mb, extra_specs, guest.image.get("properties") or {})
    return Wanted(topology, guest.pci_requests)


def _taken(held: Sequence[Held]) -> list[str]:
    return [address for row in held for address in row.pci_devices]
