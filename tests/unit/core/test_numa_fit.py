"""The fit of guests into hosts against a slow and obvious one, and what holds of every fit."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kilonova.core.numa.cpus import members, of
from kilonova.core.numa.fit import Misfit, fit, take, used_by
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
from kilonova.core.numa.wire import guest_text, host_text, read_guest, read_host

MIB = 1024


def cell(number: int, cpus: range | list[int], threads: int = 1, shared: int = 0, **values: Any) -> HostCell:
    """A host cell of these CPUs, the first `shared` of them for floating guest CPUs; neighbours are siblings."""
    listed = list(cpus)
    cores = tuple(of(listed[place : place + threads]) for place in range(0, len(listed), threads))
    rest: dict[str, Any] = {"memory_mb": 4096, "siblings": cores if threads > 1 else ()} | values
    return HostCell(number, of(listed[:shared]), of(listed[shared:]), **rest)


def guest(*cells: tuple[int, int], page_size: int | None = None, **values: Any) -> GuestTopology:
    """A guest with (pinned, floating) CPUs per cell, 512 MiB each."""
    made, first = [], 0
    for number, (pinned, floating) in enumerate(cells):
        middle, last = first + pinned, first + pinned + floating
        made.append(GuestCell(number, of(range(middle, last)), of(range(first, middle)), 512, page_size))
        first = last
    policy = "dedicated" if any(pinned for pinned, _ in cells) else "shared"
    return GuestTopology(tuple(made), **({"cpu_policy": policy} | values))


# -- properties


@st.composite
def hosts(draw: st.DrawFn) -> HostTopology:
    threads = draw(st.sampled_from([1, 2]))
    cells = []
    for number in range(draw(st.integers(1, 3))):
        first = number * 8
        cpus = range(first, first + 2 * draw(st.integers(1, 4)))
        shared = draw(st.integers(0, 2))
        made = cell(
            number, cpus, threads, shared, memory_mb=draw(st.sampled_from([512, 1024, 2048])),
            pages=(Pages(4, 2**19), Pages(2048, draw(st.sampled_from([0, 256, 512])))), socket=number // 2,
        )  # fmt: skip
        used = of(draw(st.sets(st.sampled_from(list(cpus))))) & made.pcpuset
        cells.append(replace(made, pinned=used, cpu_usage=draw(st.integers(0, 3))))
    return HostTopology(tuple(cells))


@st.composite
def guests(draw: st.DrawFn) -> GuestTopology:
    kind = draw(st.sampled_from(["dedicated", "mixed", "shared"]))
    count = draw(st.integers(1, 3))
    rows = [
        (draw(st.integers(1, 4)) if kind != "shared" else 0, draw(st.integers(1, 2)) if kind != "dedicated" else 0)
        for _ in range(count)
    ]
    threads = draw(st.sampled_from([None, "prefer", "isolate", "require"])) if kind != "shared" else None
    emulator = draw(st.sampled_from([None, "isolate"])) if kind != "shared" else None
    size = draw(st.sampled_from([None, SMALL, LARGE, ANY, 4, 2048, 1048576]))
    return guest(*rows, page_size=size, cpu_policy=kind, thread_policy=threads, emulator_threads=emulator)


def obviously_fits(host: HostTopology, wanted: GuestTopology, limits: Limits) -> bool:
    """Every way to put the guest's cells on different host cells, one after the other."""
    if wanted.thread_policy in ("require", "isolate") and host.threads != (wanted.thread_policy == "require"):
        return False
    return any(
        all(
            cell_takes(there, mine, wanted, limits, emulator=number == 0 and wanted.emulator_threads == "isolate")
            for number, (there, mine) in enumerate(zip(chosen, wanted.cells, strict=True))
        )
        for chosen in permutations(host.cells, len(wanted.cells))
    )


def cell_takes(there: HostCell, mine: GuestCell, wanted: GuestTopology, limits: Limits, *, emulator: bool) -> bool:
    shared, dedicated = set(members(there.cpuset)), set(members(there.pcpuset))
    floating, pinned = len(members(mine.cpuset)), len(members(mine.pcpuset))
    if mine.memory_mb > there.memory_mb or floating > len(shared) or pinned + emulator > len(dedicated):
        return False
    if wanted.cpu_policy != "dedicated":
        if floating and there.cpu_usage + floating > len(shared) * limits.cpu_allocation_ratio:
            return False
        if there.memory_usage + mine.memory_mb > there.memory_mb * limits.ram_allocation_ratio:
            return False
    kilobytes = mine.memory_mb * MIB
    free = {row.size_kb: (row.total - row.used - row.reserved) * row.size_kb for row in there.pages}
    smallest = min(free)
    allowed = {
        None: [], SMALL: [smallest], LARGE: [size for size in free if size != smallest], ANY: list(free),
    }.get(mine.page_size, [mine.page_size])  # fmt: skip
    fitting = [size for size in allowed if size and kilobytes <= free.get(size, -1) and kilobytes % size == 0]
    if mine.page_size is not None and not fitting:
        return False
    unused = dedicated - set(members(there.pinned))
    if wanted.thread_policy == "require" and pinned:
        pairs = [core for core in map(set, map(members, there.siblings)) if len(core & unused) == 2]
        if 2 * len(pairs) < pinned:
            return False
    return len(unused) >= pinned + emulator


@given(hosts(), guests(), st.sampled_from([Limits(), Limits(2.0, 1.5)]))
def test_a_guest_fits_just_when_some_way_to_place_its_cells_works(
    host: HostTopology, wanted: GuestTopology, limits: Limits
) -> None:
    found = fit(host, wanted, limits)
    assert isinstance(found, GuestTopology) == obviously_fits(host, wanted, limits), str(found)


@given(hosts(), guests())
def test_a_fit_gives_every_pinned_cpu_a_free_one_of_its_cell(host: HostTopology, wanted: GuestTopology) -> None:
    found = fit(host, wanted, Limits())
    if isinstance(found, Misfit):
        return
    by_id = {row.id: row for row in host.cells}
    assert len({row.host_cell for row in found.cells}) == len(found.cells)
    for mine, before in zip(found.cells, wanted.cells, strict=True):
        there = by_id[mine.host_cell or 0]
        chosen = [number for _, number in mine.pinning]
        assert [number for number, _ in mine.pinning] == members(before.pcpuset)
        assert len(set(chosen)) == len(chosen)
        assert not of(chosen) & mine.emulator
        assert (of(chosen) | mine.emulator) & ~there.free_pcpus == 0


@given(hosts(), st.lists(guests(), max_size=8))
def test_guests_one_after_the_other_never_share_what_is_theirs(host: HostTopology, wanted: list[GuestTopology]) -> None:
    left, placed = host, []
    for one in wanted:
        found = fit(left, one, Limits())
        if isinstance(found, GuestTopology):
            placed.append(found)
            left = take(left, found)
    assert left == used_by(host, placed)
    assert left == used_by(host, reversed(placed))
    seen = {row.id: row.pinned for row in host.cells}
    for one in placed:
        for mine in one.cells:
            got = of(number for _, number in mine.pinning) | mine.emulator
            assert not seen[mine.host_cell or 0] & got
            seen[mine.host_cell or 0] |= got
    for there in left.cells:
        assert all(row.free >= 0 for row in there.pages)
        assert there.pinned & ~there.pcpuset == 0


@given(hosts(), guests(), st.randoms(use_true_random=False))
def test_the_order_of_the_cells_does_not_matter(host: HostTopology, wanted: GuestTopology, dice: Any) -> None:
    mixed = list(host.cells)
    dice.shuffle(mixed)
    assert fit(HostTopology(tuple(mixed)), wanted, Limits()) == fit(host, wanted, Limits())


@given(hosts(), guests())
def test_topologies_are_the_same_after_being_written_and_read(host: HostTopology, wanted: GuestTopology) -> None:
    assert read_host(host_text(host)) == host
    assert read_guest(guest_text(wanted)) == wanted
    found = fit(host, wanted)
    if isinstance(found, GuestTopology):
        assert read_guest(guest_text(found)) == found


# -- single rules


def placed(host: HostTopology, wanted: GuestTopology, **values: Any) -> GuestTopology:
    found = fit(host, wanted, **values)
    assert isinstance(found, GuestTopology), str(found)
    return found


def cpus(found: GuestTopology) -> list[list[int]]:
    return [[number for _, number in row.pinning] for row in found.cells]


@pytest.mark.parametrize(("policy", "expected"), [
    ("prefer", [2, 3, 4, 5]), (None, [2, 3, 4, 5]), ("require", [2, 3, 4, 5]),
])  # fmt: skip
def test_a_thread_policy_says_which_threads_go_together(policy: Any, expected: list[int]) -> None:
    host = HostTopology((replace(cell(0, range(8), threads=2), pinned=1),))
    assert cpus(placed(host, guest((4, 0), thread_policy=policy))) == [expected]


def test_isolate_goes_only_where_cores_have_one_thread() -> None:
    wanted = guest((3, 0), thread_policy="isolate")
    assert cpus(placed(HostTopology((cell(0, range(8)),)), wanted)) == [[0, 1, 2]]
    assert "several threads" in str(fit(HostTopology((cell(0, range(8), threads=2),)), wanted))


def test_prefer_uses_single_threads_when_no_whole_cores_are_left_and_require_does_not() -> None:
    host = HostTopology((replace(cell(0, range(8), threads=2), pinned=of([0, 2, 4])),))
    assert cpus(placed(host, guest((5, 0), thread_policy="prefer"))) == [[1, 3, 5, 6, 7]]
    assert cpus(placed(host, guest((2, 0), thread_policy="require"))) == [[6, 7]]
    refused = fit(host, guest((4, 0), thread_policy="require"))
    assert str(refused) == "no cell of 1 has 4 free threads that share cores, most is 2"


def test_cores_in_use_are_filled_before_whole_ones() -> None:
    host = HostTopology((replace(cell(0, range(8), threads=2), pinned=of([2])),))
    assert cpus(placed(host, guest((1, 0)))) == [[3]]
    assert cpus(placed(host, guest((3, 0)))) == [[0, 1, 4]], "threads go together where they can"


def test_threads_of_one_core_are_told_to_the_guest() -> None:
    host = HostTopology((cell(0, range(4), threads=2),))
    assert [members(core) for core in placed(host, guest((4, 0))).cells[0].siblings] == [[0, 1], [2, 3]]


def test_require_needs_a_host_whose_cores_have_threads() -> None:
    refused = fit(HostTopology((cell(0, range(8)),)), guest((2, 0), thread_policy="require"))
    assert "one thread each" in str(refused)


def test_the_emulator_may_have_a_single_thread_where_the_guest_requires_pairs() -> None:
    host = HostTopology((replace(cell(0, range(6), threads=2), pinned=of([1, 2, 3])),))
    (found,) = placed(host, guest((2, 0), thread_policy="require", emulator_threads="isolate")).cells
    assert [number for _, number in found.pinning] == [4, 5]
    assert members(found.emulator) == [0]


def test_emulator_threads_get_a_cpu_beside_the_first_cell() -> None:
    host = HostTopology((cell(0, range(4)), cell(1, range(4, 8))))
    found = placed(host, guest((3, 0), (3, 0), emulator_threads="isolate"))
    assert [members(row.emulator) for row in found.cells] == [[3], []]
    assert isinstance(fit(host, guest((4, 0), emulator_threads="isolate")), Misfit)


@pytest.mark.parametrize(("size", "memory_mb", "expected"), [
    (SMALL, 512, 4), (LARGE, 512, 2048), (ANY, 512, 2048), (4, 512, 4), (2048, 512, 2048), (ANY, 513, 4),
    (LARGE, 513, None), (1048576, 1024, None), (2048, 2048, None), (ANY, 2048, 4),
])  # fmt: skip
def test_page_sizes(size: int, memory_mb: int, expected: int | None) -> None:
    host = HostTopology((cell(0, range(4), shared=4, pages=(Pages(4, 2**19), Pages(2048, 512))),))
    wanted = guest((0, 1), page_size=size)
    wanted = replace(wanted, cells=(replace(wanted.cells[0], memory_mb=memory_mb),))
    found = fit(host, wanted)
    assert (found.cells[0].page_size if isinstance(found, GuestTopology) else None) == expected


def test_reserved_pages_are_not_given() -> None:
    host = HostTopology((cell(0, range(4), shared=4, pages=(Pages(4, 0), Pages(2048, 512, reserved=300))),))
    refused = fit(host, guest((0, 1), page_size=2048))
    assert str(refused) == "no cell of 1 has 512 MiB free in pages of 2048 KiB, most is 424"


def test_floating_cpus_and_memory_are_over_committed_by_the_ratios_and_no_guest_against_itself() -> None:
    host = HostTopology((cell(0, range(4), shared=2, memory_mb=1024, cpu_usage=3, memory_usage=700),))
    assert isinstance(fit(host, guest((0, 1)), Limits(2.0, 1.5)), GuestTopology)
    assert str(fit(host, guest((0, 2)), Limits(2.0, 1.5))) == (
        "no cell of 1 has 2 shared CPUs left within the allocation ratio, most is 1"
    )
    assert "324" in str(fit(host, guest((0, 1)), Limits(2.0, 1.0)))
    assert isinstance(fit(host, guest((2, 0)), Limits(2.0, 1.0)), GuestTopology), "pinned CPUs over-commit nothing"
    assert str(fit(host, guest((0, 3)), Limits(16.0, 1.5))) == "no cell of 1 has 3 shared CPUs, most is 2"


def test_cells_are_spread_or_packed() -> None:
    host = HostTopology((replace(cell(0, range(4)), pinned=1), cell(1, range(4, 8))))
    assert placed(host, guest((2, 0))).cells[0].host_cell == 1
    assert placed(host, guest((2, 0)), pack=True).cells[0].host_cell == 0
    assert placed(host, guest((2, 0)), avoid=frozenset({1})).cells[0].host_cell == 0


def test_cells_that_fit_one_by_one_need_cells_of_their_own() -> None:
    host = HostTopology((cell(0, range(4)), cell(1, range(4, 5))))
    assert str(fit(host, guest((2, 0), (2, 0)))) == (
        "the guest's 2 cells fit one by one, but not all at once in the host's 2"
    )
    assert cpus(placed(host, guest((1, 0), (2, 0)))) == [[4], [0, 1]]


def test_a_refusal_names_the_nearest_miss() -> None:
    fuller = replace(cell(1, range(4, 8)), pinned=of([4, 5, 6]))
    host = HostTopology((replace(cell(0, range(4)), pinned=of([0, 1])), fuller))
    assert str(fit(host, guest((4, 0)))) == "no cell of 2 has 4 free dedicated CPUs, most is 2"
    assert str(fit(host, guest((1, 0), (1, 0), (1, 0)))) == "the guest has 3 NUMA cells, the host 2"


def test_many_cells_are_fitted_without_trying_all_orders() -> None:
    host = HostTopology(tuple(cell(number, [number], memory_mb=512 + number) for number in range(16)))
    wanted = guest(*[(1, 0)] * 16)
    tight = replace(wanted, cells=tuple(replace(row, memory_mb=527 - row.id) for row in wanted.cells))
    assert [row.host_cell for row in placed(host, tight).cells] == list(range(15, -1, -1))
