"""What a hypervisor can be asked, as several small protocols; a driver implements those that it can.

A protocol that a driver leaves out answers Unsupported (501) by itself: callers reach a protocol only through `need`.
Drivers know guests and hosts; they must not know workflows, databases, the API, or each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal, Protocol, TypeVar, runtime_checkable

from kilonova.bus.calls import GuestSpec
from kilonova.core.errors import Conflict, KilonovaError, NotFound, Unsupported
from kilonova.core.pci.devices import PciDevice

T = TypeVar("T")

Doc = dict[str, Any]
PowerTarget = Literal["running", "paused", "shutdown", "suspended", "reboot-soft", "reboot-hard"]


class HostUnknown(NotFound):
    code, message = "host_unknown", "Host {host} is not served here."


class GuestNotFound(NotFound):
    code, message = "guest_not_found", "Guest {server} is not on host {host}."


class GuestNotRunning(Conflict):
    code, message = "guest_not_running", "Guest {server} is not running, so it cannot become {state}."


class GuestFailed(KilonovaError):
    """The hypervisor could not do it; another host may."""

    code, message = "guest_failed", "The hypervisor on {host} failed: {reason}"


class GuestAborted(KilonovaError):
    """The hypervisor could not do it, and no other host will."""

    code, message = "guest_aborted", "The hypervisor on {host} gave up: {reason}"


class NotInDriver(Unsupported):
    code, message = "not_in_driver", "The {driver} driver does not offer {protocol}."


@dataclass(frozen=True, slots=True)
class CellFacts:
    """One NUMA node: its CPUs and the threads of each core as masks, MiB of memory, pages as (KiB, number)."""

    id: int
    cpus: int
    cores: tuple[int, ...]
    memory_mb: int
    pages: tuple[tuple[int, int], ...] = ()
    socket: int | None = None
    physnets: tuple[str, ...] = ()
    tunneled: bool = False


@dataclass(frozen=True, slots=True)
class Held:
    """What one guest has for itself: its NUMA topology (a text of `core.numa.wire`) and addresses of PCI devices."""

    server: str
    numa_topology: str
    pci_devices: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class HostFacts:
    """A hypervisor that does not change while it runs. memory in MiB, disk in GiB, the version a number that grows.

    cells: its NUMA nodes, none where the driver does not know them. devices: every PCI device, offered or not.
    """

    host: str
    node: str
    uuid: str
    hypervisor_type: str
    hypervisor_version: int
    vcpus: int
    memory_mb: int
    local_gb: int
    host_ip: str | None = None
    cpu_info: Mapping[str, Any] = field(default_factory=dict)
    supported_instances: tuple[tuple[str, str, str], ...] = ()
    cells: tuple[CellFacts, ...] = ()
    devices: tuple[PciDevice, ...] = ()


@dataclass(frozen=True, slots=True)
class Usage:
    """What the guests of a host hold. memory in MiB, disk in GiB."""

    guests: int = 0
    vcpus: int = 0
    memory_mb: int = 0
    disk_gb: int = 0


@dataclass(frozen=True, slots=True)
class GuestState:
    """A guest as the hypervisor sees it; power_state is a number of `core.states`."""

    server: str
    name: str
    power_state: int


class Driver(Protocol):
    """What every driver has."""

    name: str
    quick: bool
    """Whether every verb ends within about a millisecond, so that it may run on the thread that brings it."""

    def capabilities(self) -> frozenset[str]:
        """Standard COMPUTE_* traits of what the driver can do; the same for all its hosts."""
        ...

    def close(self) -> None:
        """Let go of files and connections; guests stay as they are."""
        ...


@runtime_checkable
class Inventory(Protocol):
    """Which hosts there are and what they have."""

    def hosts(self) -> Sequence[str]:
        """Names of the hosts served, in a stable order."""
        ...

    def facts(self, host: str) -> HostFacts:
        """Sizes and identity. HostUnknown."""
        ...

    def usage(self, hosts: Iterable[str]) -> Mapping[str, Usage]:
        """What the guests of these hosts hold; a host without guests may be left out."""
        ...


@runtime_checkable
class Lifecycle(Protocol):
    """Guests come, change power state, and go. Every verb done already is done: repeating it changes nothing."""

    def spawn(self, host: str, guest: GuestSpec, *, paused: bool) -> GuestState:
        """Make the guest and start it, paused on request. GuestFailed, GuestAborted; nothing is left behind then."""
        ...

    def destroy(self, host: str, server: str) -> None:
        """Stop the guest and remove it with its local disks; one that is not there is done."""
        ...

    def power(self, host: str, server: str, state: PowerTarget, timeout: int) -> GuestState:
        """Bring the guest to the state. timeout: seconds for a clean shutdown. GuestNotFound, GuestNotRunning."""
        ...

    def guest(self, host: str, server: str) -> GuestState:
        """The guest as it is. GuestNotFound."""
        ...

    def guests(self, host: str) -> Sequence[GuestState]:
        """All guests of a host, those that nobody asked for included."""
        ...


@runtime_checkable
class Pinning(Protocol):
    """Guests get the host CPUs, memory pages and devices that their spec names, and the driver remembers which.

    `spawn` has written it down when it returns, `destroy` has forgotten it.
    """

    def held(self, hosts: Iterable[str]) -> Mapping[str, Sequence[Held]]:
        """What the guests of these hosts have for themselves; guests without, and hosts without such, are left out."""
        ...


@runtime_checkable
class Storage(Protocol):
    """Volumes of a guest, running or not."""

    def attach_disk(self, host: str, server: str, disk: Doc) -> None:
        """Attach; attached already is done. GuestNotFound."""
        ...

    def detach_disk(self, host: str, server: str, disk: Doc) -> None:
        """Detach; not attached is done. GuestNotFound."""
        ...


@runtime_checkable
class Network(Protocol):
    """Network interfaces of a guest, running or not."""

    def attach_vif(self, host: str, server: str, vif: Doc) -> None:
        """Plug in; plugged in already is done. GuestNotFound."""
        ...

    def detach_vif(self, host: str, server: str, vif: Doc) -> None:
        """Unplug; not plugged in is done. GuestNotFound."""
        ...


@runtime_checkable
class Console(Protocol):
    """What a guest wrote on its serial console."""

    def console_output(self, host: str, server: str) -> str:
        """All of it. GuestNotFound."""
        ...


def need(driver: Driver, protocol: Callable[..., T]) -> T:
    """The driver as one of the protocols of this file. NotInDriver when it does not implement it."""
    if _implements(type(driver), protocol):
        return driver  # type: ignore[return-value]  # just checked; a protocol class is no type[T] to mypy
    raise NotInDriver(driver=driver.name, protocol=getattr(protocol, "__name__", "that").lower())


@lru_cache(maxsize=64)
def _implements(driver: type, protocol: Any) -> bool:
    return issubclass(driver, protocol)

