"""How a guest's CPUs and memory are dealt out to its cells: evenly, or as it was written down."""

from __future__ import annotations

from dataclasses import dataclass

from kilonova.core.errors import Invalid
from kilonova.core.numa.cpus import text
from kilonova.core.numa.topology import GuestCell


class CellsInvalid(Invalid):
    """CPUs or memory do not add up over the cells."""

    code, message = "cells_invalid", "{why}"


@dataclass(frozen=True, slots=True)
class Numa:
    """How many cells; per cell the CPUs (a mask) and the memory (MiB), both empty for an even deal."""

    count: int
    cpus: tuple[int, ...] = ()
    memory_mb: tuple[int, ...] = ()


def cells_of(cpus: int, memory_mb: int, pinned: int, page_size: int | None, numa: Numa) -> tuple[GuestCell, ...]:
    """The cells of a guest; pinned: the mask of its CPUs that want a host CPU of their own. CellsInvalid."""
    masks, sizes = (numa.cpus, numa.memory_mb) if numa.cpus else _evenly(cpus, memory_mb, numa.count)
    _check(cpus, memory_mb, masks, sizes)
    return tuple(
        GuestCell(number, mask & ~pinned, mask & pinned, size, page_size)
        for number, (mask, size) in enumerate(zip(masks, sizes, strict=True))
    )


def _evenly(cpus: int, memory_mb: int, count: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    if cpus % count or memory_mb % count:
        raise CellsInvalid(
            why=f"{cpus} CPUs and {memory_mb} MiB cannot be dealt evenly to {count} NUMA cells; "
            "set hw:numa_cpus.N and hw:numa_mem.N."
        )
    share = cpus // count
    return tuple(((1 << share) - 1) << (share * number) for number in range(count)), (memory_mb // count,) * count


def _check(cpus: int, memory_mb: int, masks: tuple[int, ...], sizes: tuple[int, ...]) -> None:
    named = 0
    for number, mask in enumerate(masks):
        if named & mask:
            raise CellsInvalid(why=f"CPUs {text(named & mask)} are in two NUMA cells.")
        if not mask:
            raise CellsInvalid(why=f"NUMA cell {number} has no CPU.")
        named |= mask
    every = (1 << cpus) - 1
    if named & ~every:
        raise CellsInvalid(why=f"CPUs {text(named & ~every)} of the NUMA cells are not among the flavor's {cpus}.")
    if named != every:
        raise CellsInvalid(why=f"CPUs {text(every & ~named)} are in no NUMA cell.")
    if sum(sizes) != memory_mb:
        raise CellsInvalid(why=f"The NUMA cells have {sum(sizes)} MiB of memory, the flavor {memory_mb}.")
