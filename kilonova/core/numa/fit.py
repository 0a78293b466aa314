"""Which host cells take which guest cells, and what a host has left afterwards.

Every guest cell goes to a host cell of its own. Sets of host cells are tried in the order of preference, and within a
set the guest's first cell gets the first one that leaves the others a place. The scheduler's filter and the agent's
claim call the same functions, so that they differ only where the host has changed in between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from msgspec.structs import replace

from kilonova.core.numa.cpus import members, of
from kilonova.core.numa.pinning import Lacking, pin
from kilonova.core.numa.topology import (
    ANY,
    LARGE,
    SMALL,
    GuestCell,
    GuestTopology,
    HostCell,
    HostTopology,
    Limits,
    Pages,
)

Accepts = Callable[[Sequence[HostCell]], bool]
"""Whether a set of host cells will do for what is no matter of cells: devices, networks."""


@dataclass(frozen=True, slots=True)
class Misfit:
    """Why a guest does not fit: a sentence with `{}` for each number. stage: how far a cell came before it failed."""

    reason: str
    numbers: tuple[Any, ...]
    stage: int = 0

    def __str__(self) -> str:
        return self.reason.format(*self.numbers)


@dataclass(frozen=True, slots=True)
class _Short:
    """What one host cell lacks for one guest cell. stage orders the checks: a later one was nearer to a fit."""

    stage: int
    what: str
    wanted: int
    has: int


def fit(
    host: HostTopology,
    guest: GuestTopology,
    limits: Limits | None = None,
    *,
    accepts: Accepts | None = None,
    avoid: frozenset[int] = frozenset(),
    pack: bool = False,
) -> GuestTopology | Misfit:
    """The guest with host cells, CPUs and page sizes filled in, or why it does not fit.

    limits: None when nothing is over-committed but a guest may not exceed a cell. avoid: numbers of cells to be taken
    last, because devices that the guest does not want are there. pack: fill used cells first instead of free ones.
    """
    if len(host.cells) < len(guest.cells):
        return Misfit("the guest has {} NUMA cells, the host {}", (len(guest.cells), len(host.cells)))
    if guest.thread_policy == "require" and guest.pinned and not host.threads:
        return Misfit("the guest requires threads of one core, and the host's cores have one thread each", ())
    if guest.thread_policy == "isolate" and guest.pinned and host.threads:
        return Misfit("the guest wants cores to itself, and the host's cores have several threads each", ())
    ordered = _preferred(host.cells, guest, avoid, pack=pack)
    if len(guest.cells) == 1:
        return _fit_one(ordered, guest, limits, accepts)
    found = [[_fit_cell(cell, wanted, guest, limits) for cell in ordered] for wanted in guest.cells]
    for row in found:
        if not any(isinstance(cell, GuestCell) for cell in row):
            return _nowhere([cell for cell in row if isinstance(cell, _Short)])
    possible = [of(place for place, cell in enumerate(row) if isinstance(cell, GuestCell)) for row in found]
    matched = False
    for places in combinations(range(len(ordered)), len(guest.cells)):
        chosen = _matching(possible, of(places))
        if chosen is None:
            continue
        matched = True
        if accepts is None or accepts([ordered[place] for place in chosen]):
            cells = tuple(found[number][place] for number, place in enumerate(chosen))
            return replace(guest, cells=cells)
    if matched:
        return _NOTHING_NEAR
    return Misfit("the guest's {} cells fit one by one, but not all at once in the host's {}",
                  (len(guest.cells), len(host.cells)), stage=8)  # fmt: skip


_NOTHING_NEAR = Misfit("the cells with room lack the devices or networks that the guest wants near it", (), stage=9)


def _fit_one(
    ordered: Sequence[HostCell], guest: GuestTopology, limits: Limits | None, accepts: Accepts | None
) -> GuestTopology | Misfit:
    """A guest of one cell, as most are: the first cell that will do, without a look at the others."""
    short: list[_Short] = []
    for cell in ordered:
        found = _fit_cell(cell, guest.cells[0], guest, limits)
        if isinstance(found, _Short):
            short.append(found)
        elif accepts is None or accepts([cell]):
            return replace(guest, cells=(found,))
    return _nowhere(short) if len(short) == len(ordered) else _NOTHING_NEAR


def _preferred(
    cells: Iterable[HostCell], guest: GuestTopology, avoid: frozenset[int], *, pack: bool
) -> list[HostCell]:
    sign = 1 if pack else -1
    pinned = guest.pinned

    def key(cell: HostCell) -> tuple[bool, int, int, int]:
        cpus = cell.free_pcpus.bit_count() if pinned else cell.cpuset.bit_count() - cell.cpu_usage
        return cell.id in avoid, sign * cpus, sign * cell.free_memory_mb, cell.id

    return sorted(cells, key=key)


def _matching(possible: Sequence[int], allowed: int) -> list[int] | None:
    """A place for each row, all different, out of `allowed`: the first row gets the first place that leaves the others
    one. None when there is none.
    """
    chosen: list[int] = []
    for number, row in enumerate(possible):
        for place in members(row & allowed):
            rest = allowed & ~(1 << place)
            if _can_match(possible[number + 1 :], rest):
                chosen.append(place)
                allowed = rest
                break
        else:
            return None
    return chosen


def _can_match(rows: Sequence[int], allowed: int) -> bool:
    """Whether every row can have a place of its own (augmenting paths)."""
    owner: dict[int, int] = {}

    def find(number: int, seen: set[int]) -> bool:
        for place in members(rows[number] & allowed):
            if place in seen:
                continue
            seen.add(place)
            if place not in owner or find(owner[place], seen):
                owner[place] = number
                return True
        return False

    return all(find(number, set()) for number in range(len(rows)))


def _nowhere(short: Sequence[_Short]) -> Misfit:
    """The reason of the cells that came furthest, with the most that any of them has."""
    stage = max(row.stage for row in short)
    near = [row for row in short if row.stage == stage]
    best = max(near, key=lambda row: row.has)
    return Misfit(f"no cell of {{}} has {{}} {best.what}, most is {{}}", (len(short), best.wanted, best.has), stage)


# -- one cell


def _fit_cell(cell: HostCell, wanted: GuestCell, guest: GuestTopology, limits: Limits | None) -> GuestCell | _Short:
    emulator = int(guest.emulator_threads == "isolate" and wanted.id == guest.cells[0].id)
    # a guest whose CPUs are all pinned over-commits nothing, so the ratios are not its matter
    short = _room(cell, wanted, emulator, None if guest.cpu_policy == "dedicated" else limits)
    if short is not None:
        return short
    pages = _page_size(cell, wanted)
    if isinstance(pages, _Short):
        return pages
    fitted = replace(wanted, host_cell=cell.id, page_size=pages)
    if not wanted.pcpuset and not emulator:
        return fitted
    got = pin(cell, wanted.pcpuset.bit_count(), emulator, guest.thread_policy)
    if isinstance(got, Lacking):
        what = "free threads that share cores" if got.cores else "free dedicated CPUs"
        return _Short(7 if got.cores else 6, what, got.wanted, got.most)
    pairs = tuple(zip(members(wanted.pcpuset), got.cpus, strict=True))
    guest_cpu = {host: number for number, host in pairs}
    siblings = tuple(of(guest_cpu[host] for host in core) for core in got.together)
    return replace(fitted, pinning=pairs, emulator=got.emulator, siblings=siblings)


def _room(cell: HostCell, wanted: GuestCell, emulator: int, limits: Limits | None) -> _Short | None:
    """What lacks besides pages and free CPUs: a guest may never over-commit a cell against itself."""
    floating, pinned = wanted.cpuset.bit_count(), wanted.pcpuset.bit_count() + emulator
    if wanted.memory_mb > cell.memory_mb:
        return _Short(1, "MiB of memory", wanted.memory_mb, cell.memory_mb)
    if floating > cell.cpuset.bit_count():
        return _Short(2, "shared CPUs", floating, cell.cpuset.bit_count())
    if pinned > cell.pcpuset.bit_count():
        return _Short(2, "dedicated CPUs", pinned, cell.pcpuset.bit_count())
    if limits is None:
        return None
    room = int(cell.cpuset.bit_count() * limits.cpu_allocation_ratio) - cell.cpu_usage
    if floating and floating > room:
        return _Short(3, "shared CPUs left within the allocation ratio", floating, room)
    left = int(cell.memory_mb * limits.ram_allocation_ratio) - cell.memory_usage
    if wanted.memory_mb > left:
        return _Short(4, "MiB of memory left within the allocation ratio", wanted.memory_mb, left)
    return None


def _page_size(cell: HostCell, wanted: GuestCell) -> int | _Short | None:
    """The page size (KiB) that the guest's memory gets, None where neither asks nor tells."""
    sizes = sorted(cell.pages, key=lambda pages: pages.size_kb)
    memory = wanted.memory_mb * 1024
    if wanted.page_size is None:
        # ordinary memory may be over-committed, but not beyond what is not set aside as huge pages
        small = sizes[0].total * sizes[0].size_kb if sizes else memory
        if memory > small:
            return _Short(5, "MiB of memory in small pages", wanted.memory_mb, small // 1024)
        return None
    if wanted.page_size == SMALL:
        allowed = sizes[:1]
    elif wanted.page_size == LARGE:
        allowed = sizes[1:][::-1]
    elif wanted.page_size == ANY:
        allowed = sizes[::-1]
    else:
        allowed = [pages for pages in sizes if pages.size_kb == wanted.page_size]
    for pages in allowed:
        if memory % pages.size_kb == 0 and memory <= pages.free * pages.size_kb:
            return pages.size_kb
    return _Short(5, _page_text(wanted.page_size), wanted.memory_mb, max(map(_free_mb, allowed), default=0))


def _free_mb(pages: Pages) -> int:
    return pages.free * pages.size_kb // 1024


def _page_text(size: int) -> str:
    words = {SMALL: "small pages", LARGE: "large pages", ANY: "pages of one size"}
    return f"MiB free in {words.get(size, f'pages of {size} KiB')}"


# -- what is left


def take(host: HostTopology, guest: GuestTopology) -> HostTopology:
    """The host after a fitted guest has its share."""
    by_id = {cell.host_cell: cell for cell in guest.cells}
    return HostTopology(tuple(
        _taken(cell, by_id[cell.id]) if cell.id in by_id else cell for cell in host.cells
    ))  # fmt: skip


def used_by(host: HostTopology, guests: Iterable[GuestTopology]) -> HostTopology:
    """The host after all of these guests have theirs."""
    for guest in guests:
        host = take(host, guest)
    return host


def _taken(cell: HostCell, held: GuestCell) -> HostCell:
    pinned = of(host for _, host in held.pinning) | held.emulator
    pages = cell.pages
    if held.page_size is not None:
        count = held.memory_mb * 1024 // held.page_size
        pages = tuple(
            replace(row, used=row.used + count) if row.size_kb == held.page_size else row for row in cell.pages
        )
    return replace(
        cell,
        cpu_usage=cell.cpu_usage + held.cpuset.bit_count(),
        memory_usage=cell.memory_usage + held.memory_mb,
        pinned=cell.pinned | pinned,
        pages=pages,
    )
