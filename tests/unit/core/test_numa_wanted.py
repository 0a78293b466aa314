"""From flavor and image to a topology: what is dealt how, and every refusal."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kilonova.core.numa.cpus import CpuSetInvalid, members, of, parse, text
from kilonova.core.numa.topology import ANY, LARGE, SMALL, GuestTopology
from kilonova.core.numa.wanted import TopologyInvalid, page_size, wanted

Words = dict[str, str]


def topology(specs: Words, image: dict[str, Any] | None = None) -> GuestTopology | None:
    """The topology of a flavor with these `hw:` specs (and others written with a colon)."""
    full = {key if ":" in key else f"hw:{key}": value for key, value in specs.items()}
    properties = {key if ":" in key else f"hw_{key}": value for key, value in (image or {}).items()}
    return wanted(4, 4096, full, properties)


def dealt(specs: Words) -> list[tuple[str, str, int]]:
    """(floating, pinned, MiB) per cell."""
    found = topology(specs)
    assert found is not None
    return [(text(cell.cpuset), text(cell.pcpuset), cell.memory_mb) for cell in found.cells]


@pytest.mark.parametrize("specs", [
    {}, {"cpu_policy": "shared"}, {"emulator_threads_policy": "share"}, {"cpu_realtime_mask": "^0"},
    {"numa_cpus.0": "0-1"}, {"resources:VCPU": "2"}, {"resources:MEMORY_MB": "1"}, {"cpu_sockets": "2"},
])  # fmt: skip
def test_a_guest_that_asks_for_nothing_of_the_kind_has_no_topology(specs: Words) -> None:
    assert topology(specs) is None


@pytest.mark.parametrize(("specs", "expected"), [
    ({"cpu_policy": "dedicated"}, [("", "0-3", 4096)]),
    ({"resources:PCPU": "4"}, [("", "0-3", 4096)]),
    ({"resources:PCPU": "5", "emulator_threads_policy": "isolate"}, [("", "0-3", 4096)]),
    ({"mem_page_size": "large"}, [("0-3", "", 4096)]),
    ({"pmem": "a"}, [("0-3", "", 4096)]),
    ({"numa_nodes": "1"}, [("0-3", "", 4096)]),
    ({"numa_nodes": "2"}, [("0-1", "", 2048), ("2-3", "", 2048)]),
    ({"numa_nodes": "2", "cpu_policy": "dedicated"}, [("", "0-1", 2048), ("", "2-3", 2048)]),
    ({"cpu_policy": "mixed", "cpu_dedicated_mask": "1-2"}, [("0,3", "1-2", 4096)]),
    ({"cpu_policy": "mixed", "cpu_dedicated_mask": "^0"}, [("0", "1-3", 4096)]),
    ({"cpu_policy": "mixed", "cpu_realtime": "yes", "cpu_realtime_mask": "2-3"}, [("0-1", "2-3", 4096)]),
    ({"cpu_policy": "mixed", "cpu_dedicated_mask": "0,2", "numa_nodes": "2"}, [("1", "0", 2048), ("3", "2", 2048)]),
    (
        {"numa_nodes": "2", "numa_cpus.0": "0,3", "numa_cpus.1": "1-2", "numa_mem.0": "1024", "numa_mem.1": "3072"},
        [("0,3", "", 1024), ("1-2", "", 3072)],
    ),
    ({"mem_page_size": "4", "numa_cpus.0": "0-3", "numa_mem.0": "4096"}, [("0-3", "", 4096)]),
])  # fmt: skip
def test_cpus_and_memory_are_dealt_to_cells(specs: Words, expected: list[tuple[str, str, int]]) -> None:
    assert dealt(specs) == expected


@pytest.mark.parametrize(("specs", "image", "message"), [
    ({"cpu_policy": "pinned"}, {}, "must be one of dedicated"),
    ({"cpu_policy": "shared"}, {"cpu_policy": "dedicated"}, "goes beyond"),
    ({"cpu_policy": "shared"}, {"cpu_policy": "mixed"}, "goes beyond"),
    ({"cpu_policy": "mixed", "cpu_dedicated_mask": "1"}, {"cpu_policy": "dedicated"}, "goes beyond"),
    ({"cpu_policy": "dedicated", "resources:PCPU": "4"}, {}, "may not ask for resources:VCPU or resources:PCPU"),
    ({"resources:PCPU": "2", "resources:VCPU": "2"}, {}, "not for both"),
    ({"resources:PCPU": "3"}, {}, "it must be 4"),
    ({"resources:PCPU": "4", "emulator_threads_policy": "isolate"}, {}, "it must be 5"),
    ({"cpu_thread_policy": "require"}, {}, "needs pinned CPUs"),
    ({"emulator_threads_policy": "isolate"}, {}, "needs pinned CPUs"),
    ({"cpu_realtime": "yes", "cpu_realtime_mask": "^0"}, {}, "needs pinned CPUs"),
    ({"cpu_policy": "dedicated", "cpu_thread_policy": "isolate"}, {"cpu_thread_policy": "require"}, "contradicts"),
    ({"cpu_policy": "dedicated", "cpu_thread_policy": "isolate", "trait:HW_CPU_HYPERTHREADING": "required"}, {},
     "may not be set together"),
    ({"cpu_policy": "dedicated", "cpu_dedicated_mask": "0"}, {}, "needs hw:cpu_policy=mixed"),
    ({"cpu_dedicated_mask": "0"}, {}, "needs hw:cpu_policy=mixed"),
    ({"cpu_policy": "mixed"}, {}, "needs hw:cpu_dedicated_mask or realtime"),
    ({"cpu_policy": "mixed", "cpu_dedicated_mask": "1", "cpu_realtime": "1", "cpu_realtime_mask": "1"}, {}, "not both"),
    ({"cpu_policy": "mixed", "cpu_dedicated_mask": "0-3"}, {}, "not all"),
    ({"cpu_policy": "mixed", "cpu_dedicated_mask": "4"}, {}, "no other"),
    ({"cpu_policy": "mixed", "cpu_dedicated_mask": "3-1"}, {}, "ends before it begins"),
    ({"cpu_policy": "dedicated", "cpu_realtime": "yes"}, {}, "a CPU that is not realtime"),
    ({"cpu_policy": "dedicated", "cpu_realtime": "yes", "cpu_realtime_mask": "7"}, {}, "must name some of the 4"),
    ({"numa_nodes": "3"}, {}, "cannot be dealt evenly"),
    ({"numa_nodes": "0"}, {}, "at least 1"),
    ({"numa_nodes": "two"}, {}, "must be a number"),
    ({"numa_nodes": "2"}, {"numa_nodes": "2"}, "may not set hw_numa_nodes"),
    ({"numa_nodes": "1", "numa_cpus.0": "0-3"}, {"numa_cpus.0": "0-3"}, "may not set hw_numa_cpus"),
    ({"numa_nodes": "2", "numa_cpus.0": "0-3", "numa_mem.0": "4096"}, {}, "for each of the 2 cells"),
    ({"numa_nodes": "1", "numa_cpus.0": "0-3"}, {}, "for each of the 1 cells"),
    ({"numa_nodes": "1", "numa_cpus.0": "0-2", "numa_mem.0": "4096"}, {}, "CPUs 3 are in no NUMA cell"),
    ({"numa_nodes": "1", "numa_cpus.0": "0-4", "numa_mem.0": "4096"}, {}, "CPUs 4 of the NUMA cells are not among"),
    ({"numa_nodes": "1", "numa_cpus.0": "0-3", "numa_mem.0": "1"}, {}, "have 1 MiB of memory, the flavor 4096"),
    ({"numa_nodes": "2", "numa_cpus.0": "0-3", "numa_cpus.1": "3", "numa_mem.0": "1", "numa_mem.1": "1"}, {},
     "CPUs 3 are in two NUMA cells"),
    ({}, {"mem_page_size": "2048"}, "needs a flavor whose hw:mem_page_size"),
    ({"mem_page_size": "small"}, {"mem_page_size": "2048"}, "needs a flavor whose hw:mem_page_size"),
    ({"mem_page_size": "2M"}, {}, "is no page size"),
    ({"locked_memory": "true"}, {}, "needs a page size"),
    ({"locked_memory": "true", "mem_page_size": "any"}, {"locked_memory": False}, "must be equal"),
])  # fmt: skip
def test_what_contradicts_itself_is_refused(specs: Words, image: dict[str, Any], message: str) -> None:
    with pytest.raises(TopologyInvalid, match=message) as caught:
        topology(specs, image)
    assert caught.value.status == 400


@pytest.mark.parametrize(("specs", "image", "policy", "threads"), [
    ({"cpu_policy": "dedicated"}, {"cpu_policy": "shared"}, "dedicated", None),
    ({}, {"cpu_policy": "dedicated", "cpu_thread_policy": "isolate"}, "dedicated", "isolate"),
    ({"cpu_policy": "dedicated", "cpu_thread_policy": "prefer"}, {"cpu_thread_policy": "isolate"}, "dedicated",
     "prefer"),
    ({"cpu_policy": "dedicated"}, {"trait:HW_CPU_HYPERTHREADING": "required"}, "dedicated", "require"),
    ({"cpu_policy": "dedicated", "trait:HW_CPU_HYPERTHREADING": "forbidden"}, {}, "dedicated", "isolate"),
])  # fmt: skip
def test_flavor_and_image_agree_on_a_policy(specs: Words, image: Words, policy: str, threads: str | None) -> None:
    found = topology(specs, image)
    assert found is not None
    assert (found.cpu_policy, found.thread_policy) == (policy, threads)


def test_the_image_says_more_where_the_flavor_leaves_room() -> None:
    found = topology({"mem_page_size": "any"}, {"mem_page_size": "1GB", "numa_nodes": 2})
    assert found is not None
    assert [cell.page_size for cell in found.cells] == [1048576, 1048576]


@pytest.mark.parametrize(("written", "expected"), [
    ("small", SMALL), ("Large", LARGE), ("any", ANY), ("2048", 2048), ("2MB", 2048), ("2MiB", 2048), ("1GB", 1048576),
    ("2048KB", 2048), ("16384Kbit", 2048),
])  # fmt: skip
def test_page_sizes_are_read(written: str, expected: int) -> None:
    assert page_size(written) == expected


@given(st.sets(st.integers(0, 300)))
def test_a_set_of_cpus_survives_its_text(numbers: set[int]) -> None:
    mask = of(numbers)
    assert members(mask) == sorted(numbers)
    assert (parse(text(mask)) if mask else 0) == mask


@pytest.mark.parametrize(("written", "expected"), [
    ("0", [0]), ("0-3,^1", [0, 2, 3]), ("^0", [1, 2, 3]), ("^0,^2-3", [1]), (" 1 , 3 ", [1, 3]), ("0-1,^5", [0, 1]),
])  # fmt: skip
def test_sets_of_cpus_are_read(written: str, expected: list[int]) -> None:
    assert members(parse(written, every=15)) == expected


@pytest.mark.parametrize("written", ["", "a", "1-", "-1", "1--2", "0-1-2", "1,,2", "3-1", "99999", "0-4096"])
def test_what_is_no_set_of_cpus_is_refused(written: str) -> None:
    with pytest.raises(CpuSetInvalid):
        parse(written)
