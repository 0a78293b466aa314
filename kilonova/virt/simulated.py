"""Hypervisors that keep books and run nothing: thousands of hosts in one process, for trying and testing a cloud.

Implements every protocol of `virt.driver`, with sizes, delays and failures as configured. Guests live in a file of
their own (`simulated_store`), so they survive the agent. It must not know workflows, tickets or the control plane.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from kilonova.bus.calls import GuestSpec
from kilonova.core import clock, ids, states
from kilonova.virt import simulated_faults, simulated_hardware
from kilonova.virt.driver import (
    Doc,
    GuestNotFound,
    GuestNotRunning,
    GuestState,
    Held,
    HostFacts,
    HostUnknown,
    PowerTarget,
    Usage,
)
from kilonova.virt.simulated_console import boot_log
from kilonova.virt.simulated_faults import Fault, FaultPlan
from kilonova.virt.simulated_hardware import Hardware
from kilonova.virt.simulated_store import Guest, GuestStore

_NAMESPACE = "7b1f4c0e-52a4-5f0f-9f3c-0d5a6a2f6f11"  # node uuids derive from it and the host's name; never change it
_CPU_INFO: dict[str, Any] = {
    "arch": "x86_64",
    "model": "simulated",
    "vendor": "Kilonova",
    "topology": {"cells": 1, "sockets": 2, "cores": 8, "threads": 2},
    "features": [],
}
_RUNS = tuple(("x86_64", kind, "hvm") for kind in ("fake", "qemu", "kvm"))
_CAPABILITIES = frozenset({
    "COMPUTE_ACCELERATORS", "COMPUTE_DEVICE_TAGGING", "COMPUTE_IMAGE_TYPE_AKI", "COMPUTE_IMAGE_TYPE_AMI",
    "COMPUTE_IMAGE_TYPE_ARI", "COMPUTE_IMAGE_TYPE_ISO", "COMPUTE_IMAGE_TYPE_QCOW2", "COMPUTE_IMAGE_TYPE_RAW",
    "COMPUTE_NET_ATTACH_INTERFACE", "COMPUTE_NET_ATTACH_INTERFACE_WITH_TAG", "COMPUTE_NET_VIF_MODEL_VIRTIO",
    "COMPUTE_STORAGE_BUS_VIRTIO", "COMPUTE_VOLUME_ATTACH", "COMPUTE_VOLUME_ATTACH_WITH_TAG",
    "COMPUTE_VOLUME_MULTI_ATTACH",
})  # fmt: skip

_WITH_CELLS = frozenset({"COMPUTE_SOCKET_PCI_NUMA_AFFINITY"})


@dataclass(frozen=True, slots=True)
class Sizes:
    """One host. memory in MiB, disk in GiB. The defaults hold ten m1.xlarge (8 vCPU, 16 GiB, 160 GB)."""

    vcpus: int = 32
    memory_mb: int = 196608
    local_gb: int = 4096


@dataclass(frozen=True, slots=True)
class Delays:
    """Seconds that a verb takes."""

    spawn: float = 0.0
    destroy: float = 0.0
    power: float = 0.0
    disk: float = 0.0

    @property
    def none(self) -> bool:
        return not (self.spawn or self.destroy or self.power or self.disk)


@dataclass(frozen=True, slots=True)
class SimulatedSettings:
    """How many hosts, how large, how slow, how broken."""

    hosts: int = 1
    prefix: str = "sim-"
    sizes: Sizes = Sizes()
    delays: Delays = Delays()
    faults: tuple[Fault, ...] = ()
    host_ip: str | None = None
    hardware: Hardware = field(default_factory=Hardware)

    @classmethod
    def from_conf(cls, conf: Any) -> SimulatedSettings:
        """From the option group `[simulated]` and `my_ip`. FaultInvalid for a fault that cannot be read."""
        group = conf.simulated
        return cls(
            hosts=group.hosts,
            prefix=group.host_prefix,
            sizes=Sizes(group.vcpus, group.memory_mb, group.local_gb),
            delays=Delays(group.spawn_delay, group.destroy_delay, group.power_delay, group.disk_delay),
            faults=tuple(simulated_faults.parse(text) for text in group.faults),
            host_ip=conf.my_ip,
            hardware=simulated_hardware.from_conf(group),
        )


def host_names(count: int, prefix: str = "sim-") -> tuple[str, ...]:
    """`sim-0001` and on; the first names stay the same when the count grows."""
    return tuple(f"{prefix}{number:04d}" for number in range(1, count + 1))


@dataclass(frozen=True, slots=True)
class _Reached:
    """A power state: its number, and whether a guest that is off can get there."""

    number: int
    from_off: bool


_TARGETS: Mapping[str, _Reached] = {
    "running": _Reached(states.RUNNING, True),
    "paused": _Reached(states.POWER_PAUSED, False),
    "suspended": _Reached(states.POWER_SUSPENDED, False),
    "shutdown": _Reached(states.SHUTDOWN, True),
    "reboot-soft": _Reached(states.RUNNING, True),
    "reboot-hard": _Reached(states.RUNNING, True),
}


class SimulatedDriver:
    """All hosts of one process. `path` is the file of the guests, made when it is not there."""

    name = "simulated"

    def __init__(
        self, path: str, hosts: int | None = None, settings: SimulatedSettings = SimulatedSettings()
    ) -> None:
        self._settings = settings if hosts is None else replace(settings, hosts=hosts)
        self._hosts = dict.fromkeys(host_names(self._settings.hosts, self._settings.prefix))
        self._faults = FaultPlan(self._settings.faults)
        self._store = GuestStore(path)
        self.quick = self._settings.delays.none
        hardware, sizes = self._settings.hardware, self._settings.sizes
        self._cells = simulated_hardware.cells(hardware, sizes.vcpus, sizes.memory_mb)
        self._devices = simulated_hardware.devices(hardware)

    def capabilities(self) -> frozenset[str]:
        return _CAPABILITIES | _WITH_CELLS if self._cells else _CAPABILITIES

    def close(self) -> None:
        self._store.close()

    # -- inventory

    def hosts(self) -> Sequence[str]:
        return tuple(self._hosts)

    def facts(self, host: str) -> HostFacts:
        self._check(host)
        sizes = self._settings.sizes
        return HostFacts(
            host=host,
            node=host,
            uuid=ids.derived_uuid(_NAMESPACE, host),
            hypervisor_type="fake",
            hypervisor_version=1000,
            vcpus=sizes.vcpus,
            memory_mb=sizes.memory_mb,
            local_gb=sizes.local_gb,
            host_ip=self._settings.host_ip,
            cpu_info=_CPU_INFO,
            supported_instances=_RUNS,
            cells=self._cells,
            devices=self._devices,
        )

    def usage(self, hosts: Iterable[str]) -> Mapping[str, Usage]:
        return self._store.usage(hosts)

    def held(self, hosts: Iterable[str]) -> Mapping[str, Sequence[Held]]:
        return self._store.held(hosts)

    # -- lifecycle

    def spawn(self, host: str, guest: GuestSpec, *, paused: bool) -> GuestState:
        self._begin("spawn", host, self._settings.delays.spawn)
        known = self._store.get(host, guest.uuid)
        if known is None:
            state = states.POWER_PAUSED if paused else states.RUNNING
            known = Guest(host, msgspec.structs.replace(guest, admin_password=None), state, 1, _now())
            self._store.add(known)
        return _state(known)

    def destroy(self, host: str, server: str) -> None:
        self._begin("destroy", host, self._settings.delays.destroy)
        self._store.remove(host, server)

    def power(self, host: str, server: str, state: PowerTarget, timeout: int) -> GuestState:
        self._begin("power", host, min(self._settings.delays.power, float(timeout)))
        guest = self._guest(host, server)
        target = _TARGETS[state]
        off = guest.power_state in (states.SHUTDOWN, states.CRASHED)
        if off and not target.from_off:
            raise GuestNotRunning(server=server, state=state)
        boots = state.startswith("reboot") or (off and target.number == states.RUNNING)
        if boots:
            guest = replace(guest, boots=guest.boots + 1, started_at=_now())
        if boots or guest.power_state != target.number:
            guest = replace(guest, power_state=target.number)
            self._store.change(guest)
        return _state(guest)

    def guest(self, host: str, server: str) -> GuestState:
        return _state(self._guest(host, server))

    def guests(self, host: str) -> Sequence[GuestState]:
        self._check(host)
        return [_state(guest) for guest in self._store.on(host)]

    # -- storage, network, console

    def attach_disk(self, host: str, server: str, disk: Doc) -> None:
        self._set_disk(host, server, disk, present=True)

    def detach_disk(self, host: str, server: str, disk: Doc) -> None:
        self._set_disk(host, server, disk, present=False)

    def _set_disk(self, host: str, server: str, disk: Doc, *, present: bool) -> None:
        self._begin("disk", host, self._settings.delays.disk)
        guest = self._guest(host, server)
        disks = _with(guest.spec.disks, disk, "volume_id", present=present)
        self._store.change(replace(guest, spec=msgspec.structs.replace(guest.spec, disks=disks)))

    def attach_vif(self, host: str, server: str, vif: Doc) -> None:
        self._set_vif(host, server, vif, present=True)

    def detach_vif(self, host: str, server: str, vif: Doc) -> None:
        self._set_vif(host, server, vif, present=False)

    def _set_vif(self, host: str, server: str, vif: Doc, *, present: bool) -> None:
        self._begin("vif", host, 0.0)
        guest = self._guest(host, server)
        vifs = _with(guest.spec.vifs, vif, "id", present=present)
        self._store.change(replace(guest, spec=msgspec.structs.replace(guest.spec, vifs=vifs)))

    def console_output(self, host: str, server: str) -> str:
        self._begin("console", host, 0.0)
        guest = self._guest(host, server)
        return boot_log(guest.spec, guest.boots, guest.started_at)

    # -- common to all verbs

    def _begin(self, verb: str, host: str, delay: float) -> None:
        self._check(host)
        if delay:
            clock.sleep(delay)
        self._faults.check(verb, host)

    def _check(self, host: str) -> None:
        if host not in self._hosts:
            raise HostUnknown(host=host)

    def _guest(self, host: str, server: str) -> Guest:
        self._check(host)
        found = self._store.get(host, server)
        if found is None:
            raise GuestNotFound(server=server, host=host)
        return found


def _with(documents: tuple[Doc, ...], document: Doc, key: str, *, present: bool) -> tuple[Doc, ...]:
    """The documents with this one in place of its namesake, or without it."""
    others = tuple(other for other in documents if other.get(key) != document.get(key))
    return (*others, document) if present else others


def _state(guest: Guest) -> GuestState:
    return GuestState(guest.spec.uuid, guest.spec.name, guest.power_state)


def _now() -> str:
    return str(clock.raw(clock.utcnow()))
