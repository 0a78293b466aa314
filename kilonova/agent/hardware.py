"""What of a host's hardware guests may have for themselves: the driver's facts under the operator's options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kilonova.agent.settings import AgentSettings
from kilonova.core.errors import Invalid
from kilonova.core.numa.cpus import parse
from kilonova.core.numa.topology import HostCell, HostTopology, Pages
from kilonova.core.pci.devices import Offered, offered
from kilonova.virt.driver import CellFacts, HostFacts


class CpuSetsInvalid(Invalid):
    """`[compute]cpu_shared_set` and `cpu_dedicated_set` do not go together, or not with the host."""

    code, message = "cpu_sets_invalid", "[compute]cpu_shared_set and cpu_dedicated_set cannot be used: {why}."


def cpu_sets(facts: HostFacts, settings: AgentSettings) -> tuple[int, int]:
    """The CPUs (masks) that guest CPUs share, and those that pinned ones get; for a host without cells all are shared.

    With a dedicated set alone, no CPU is shared. CpuSetsInvalid.
    """
    every = 0
    for cell in facts.cells:
        every |= cell.cpus
    if not every:
        return (1 << facts.vcpus) - 1, 0
    dedicated = parse(settings.cpu_dedicated_set, every=every) if settings.cpu_dedicated_set else 0
    shared = parse(settings.cpu_shared_set, every=every) if settings.cpu_shared_set else (0 if dedicated else every)
    if shared & dedicated:
        raise CpuSetsInvalid(why="they have CPUs in common")
    if (shared | dedicated) & ~every:
        raise CpuSetsInvalid(why=f"the host has only {every.bit_count()} CPUs")
    return shared, dedicated


def topology(facts: HostFacts, settings: AgentSettings) -> HostTopology | None:
    """The host's cells without any guest; None where the driver tells of none."""
    if not facts.cells:
        return None
    shared, dedicated = cpu_sets(facts, settings)
    return HostTopology(tuple(_cell(cell, shared, dedicated, settings.reserved_huge_pages) for cell in facts.cells))


def devices(facts: HostFacts, settings: AgentSettings) -> tuple[Offered, ...]:
    """The devices that guests may get."""
    return offered(facts.devices, settings.device_spec) if settings.device_spec else ()


def _cell(cell: CellFacts, shared: int, dedicated: int, reserved: Sequence[Mapping[str, str]]) -> HostCell:
    siblings = cell.cores if any(core.bit_count() > 1 for core in cell.cores) else ()
    pages = tuple(Pages(size, total, 0, min(total, _kept(cell.id, size, reserved))) for size, total in cell.pages)
    return HostCell(
        cell.id, cell.cpus & shared, cell.cpus & dedicated, cell.memory_mb, siblings=siblings, pages=pages,
        socket=cell.socket, physnets=cell.physnets, tunneled=cell.tunneled,
    )  # fmt: skip


def _kept(cell: int, size_kb: int, reserved: Sequence[Mapping[str, str]]) -> int:
    """Pages of `[DEFAULT]reserved_huge_pages` for this cell and size."""
    return sum(
        int(row.get("count", 0)) for row in reserved
        if int(row.get("node", 0)) == cell and int(row.get("size", 0)) == size_kb
    )  # fmt: skip
