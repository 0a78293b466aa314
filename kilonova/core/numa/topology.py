"""The topologies themselves: cells of a host, cells of a guest. Frozen values, memory in MiB, CPU sets as masks."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

SMALL: Final = -1
LARGE: Final = -2
ANY: Final = -3
"""Page sizes a guest may want that are no number of KiB: the host's smallest, any but the smallest, or any at all."""

CpuPolicy = Literal["shared", "dedicated", "mixed"]
ThreadPolicy = Literal["prefer", "isolate", "require"]
EmulatorPolicy = Literal["share", "isolate"]


class Pages(msgspec.Struct, frozen=True, gc=False):
    """Memory pages of one size (KiB) in a cell. reserved: kept from guests by the operator."""

    size_kb: int
    total: int
    used: int = 0
    reserved: int = 0

    @property
    def free(self) -> int:
        """Pages that a guest may get."""
        return self.total - self.used - self.reserved


class HostCell(msgspec.Struct, frozen=True, gc=False):
    """One NUMA node of a host.

    cpuset: CPUs that floating guest CPUs share; pcpuset: those given to one guest CPU each, `pinned` being taken.
    siblings: threads of a core, a mask per core; empty where cores have one thread. physnets, tunneled: networks
    whose cards are at this node.
    """

    id: int
    cpuset: int
    pcpuset: int
    memory_mb: int
    cpu_usage: int = 0
    memory_usage: int = 0
    pinned: int = 0
    siblings: tuple[int, ...] = ()
    pages: tuple[Pages, ...] = ()
    socket: int | None = None
    physnets: tuple[str, ...] = ()
    tunneled: bool = False

    @property
    def free_pcpus(self) -> int:
        """CPUs that can still be given to one guest CPU."""
        return self.pcpuset & ~self.pinned

    @property
    def free_memory_mb(self) -> int:
        """Memory that no guest with a topology has, over-commitment aside."""
        return self.memory_mb - self.memory_usage


class HostTopology(msgspec.Struct, frozen=True, gc=False):
    """A host's cells, by their number."""

    cells: tuple[HostCell, ...]

    @property
    def threads(self) -> bool:
        """Whether some core has more than one thread."""
        return any(core.bit_count() > 1 for cell in self.cells for core in cell.siblings)


class GuestCell(msgspec.Struct, frozen=True, gc=False):
    """One NUMA node of a guest: floating CPUs, pinned CPUs, memory, page size (KiB, or SMALL, LARGE, ANY).

    The rest is known once it is fitted: its host's cell, which host CPU each pinned CPU has, the host CPUs of the
    emulator, and which guest CPUs are threads of one core.
    """

    id: int
    cpuset: int
    pcpuset: int
    memory_mb: int
    page_size: int | None = None
    host_cell: int | None = None
    pinning: tuple[tuple[int, int], ...] = ()
    emulator: int = 0
    siblings: tuple[int, ...] = ()


class GuestTopology(msgspec.Struct, frozen=True, gc=False):
    """What a guest wants of its host's cells, or has of them."""

    cells: tuple[GuestCell, ...]
    cpu_policy: CpuPolicy = "shared"
    thread_policy: ThreadPolicy | None = None
    emulator_threads: EmulatorPolicy | None = None

    @property
    def pinned(self) -> bool:
        """Whether some CPU wants a host CPU of its own."""
        return any(cell.pcpuset for cell in self.cells)

    @property
    def dedicated_cpus(self) -> int:
        """How many host CPUs it takes for itself, the emulator's included."""
        return sum(cell.pcpuset.bit_count() for cell in self.cells) + int(self.emulator_threads == "isolate")


class Limits(msgspec.Struct, frozen=True, gc=False):
    """How far a cell may be over-committed: floating CPUs per host CPU, memory given per memory there is."""

    cpu_allocation_ratio: float = 1.0
    ram_allocation_ratio: float = 1.0
