"""Which host CPUs the pinned CPUs of one guest cell get, by thread policy.

prefer (and none): as many threads of a core together as the cell still has cores for. require: threads of a core
together, two at least. isolate: a core each, on hosts whose cores have one thread (`fit` sees to that). The choice
depends on the cell alone, lowest CPUs first, cores that are already in use before untouched ones, so that whole cores
are kept for those who need them.
"""

from __future__ import annotations

from dataclasses import dataclass

from kilonova.core.numa.cpus import members, of
from kilonova.core.numa.topology import HostCell, ThreadPolicy


@dataclass(frozen=True, slots=True)
class Pinned:
    """host CPUs in the order of the guest's, those of the emulator, and groups of the former that share a core."""

    cpus: tuple[int, ...]
    emulator: int
    together: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Lacking:
    """How many were wanted and how many could be had: CPUs, or with `cores` threads that share cores."""

    wanted: int
    most: int
    cores: bool = False


def pin(cell: HostCell, count: int, emulator: int, policy: ThreadPolicy | None) -> Pinned | Lacking:
    """Host CPUs for `count` guest CPUs and `emulator` more for emulator threads, or what is lacking.

    The policy is about the guest's CPUs; its emulator may have any thread that is left.
    """
    free = cell.free_pcpus
    if free.bit_count() < count + emulator:
        return Lacking(count + emulator, free.bit_count())
    cores = _cores(cell)
    most_threads = max(core.bit_count() for core in cores)
    most = 0
    for threads in range(most_threads if count > 1 or policy == "require" else 1, 1, -1):
        usable = [core & free for core in cores if (core & free).bit_count() >= threads]
        most = max(most, threads * len(usable))
        if threads * len(usable) >= count:
            chosen = sorted(usable, key=_used_first)[: -(-count // threads)]
            return _split([members(core)[:threads] for core in chosen], count, emulator, free)
    if policy == "require":
        return Lacking(count, most, cores=True)
    single = sorted((core & free for core in cores if core & free), key=_used_first)
    return _split([members(core) for core in single], count, emulator, free)


def _cores(cell: HostCell) -> list[int]:
    """The cores of a cell; CPUs that are named in none count as cores of one thread."""
    named = 0
    for core in cell.siblings:
        named |= core
    return [*cell.siblings, *(1 << number for number in members(cell.pcpuset & ~named))]


def _used_first(core: int) -> tuple[int, int]:
    return core.bit_count(), core & -core


def _split(cores: list[list[int]], count: int, emulator: int, free: int) -> Pinned:
    """The guest's CPUs off these cores, in order; the emulator's from what is left of them, or of `free`."""
    order = [number for core in cores for number in core]
    chosen = order[:count]
    rest = [*order[count:], *members(free & ~of(order))] if emulator else []
    together = [tuple(number for number in core if number in chosen) for core in cores]
    return Pinned(tuple(chosen), of(rest[:emulator]), tuple(row for row in together if len(row) > 1))
