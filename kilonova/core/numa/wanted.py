"""From a flavor's extra specs and an image's properties to the topology a guest wants, or the refusal.

Where both say something, the rules of flavor against image decide: a flavor's word is not to be overruled.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from kilonova.core.errors import Invalid
from kilonova.core.numa.cells import CellsInvalid, Numa, cells_of
from kilonova.core.numa.cpus import CpuSetInvalid, parse
from kilonova.core.numa.topology import ANY, LARGE, SMALL, CpuPolicy, EmulatorPolicy, GuestTopology, ThreadPolicy

TRUE: Final = frozenset({"1", "t", "true", "on", "y", "yes"})
HYPERTHREADING: Final = "trait:HW_CPU_HYPERTHREADING"

_PINNING: Final = frozenset({"dedicated", "mixed"})
_CPU_REQUEST = re.compile(r"resources[A-Za-z0-9_-]*:(VCPU|PCPU)")
_PAGE_SIZE = re.compile(r"(\d+)(?:([kKMGT]i?)?(b|bit|B))?")
_UNITS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}


class TopologyInvalid(Invalid):
    """What flavor and image ask of CPUs, NUMA cells or memory pages contradicts itself."""

    code, message = "topology_invalid", "{why}"


@dataclass(frozen=True, slots=True)
class Wishes:
    """A flavor and the image's properties, as text. cpus and memory (MiB) are the flavor's."""

    cpus: int
    memory_mb: int
    extra_specs: Mapping[str, str]
    properties: Mapping[str, Any]

    def flavor(self, name: str) -> str | None:
        """The extra spec `hw:name`."""
        return _word(self.extra_specs.get(f"hw:{name}"))

    def image(self, name: str) -> str | None:
        """The image property `hw_name`."""
        return _word(self.properties.get(f"hw_{name}"))


def wanted(cpus: int, memory_mb: int, extra_specs: Mapping[str, str], properties: Mapping[str, Any]) -> (
    GuestTopology | None
):  # fmt: skip
    """The topology, None for a guest that does not care. TopologyInvalid."""
    wishes = Wishes(cpus, memory_mb, extra_specs, properties)
    try:
        return _wanted(wishes)
    except (CpuSetInvalid, CellsInvalid) as error:
        raise TopologyInvalid(why=error.text) from None


def _wanted(wishes: Wishes) -> GuestTopology | None:
    policy = _cpu_policy(wishes)
    threads = _thread_policy(wishes)
    emulator = _emulator_policy(wishes)
    realtime = _realtime(wishes, emulator)
    dedicated = _dedicated(wishes)
    _check_policy(policy, threads, emulator, realtime, dedicated)
    pinned = 0
    if policy == "dedicated":
        pinned = (1 << wishes.cpus) - 1
    elif policy == "mixed":
        pinned = dedicated or realtime
    page_size = _page_size(wishes)
    _check_locked_memory(wishes, page_size)
    implied = page_size is not None or policy in _PINNING or bool(wishes.extra_specs.get("hw:pmem"))
    numa = _numa(wishes, implied=implied)
    if numa is None:
        return None
    cells = cells_of(wishes.cpus, wishes.memory_mb, pinned, page_size, numa)
    return GuestTopology(cells, policy or "shared", threads, emulator)


# -- CPUs


def _cpu_policy(wishes: Wishes) -> CpuPolicy | None:
    ours = _one_of(wishes.flavor("cpu_policy"), "hw:cpu_policy", ("dedicated", "shared", "mixed"))
    theirs = _one_of(wishes.image("cpu_policy"), "hw_cpu_policy", ("dedicated", "shared", "mixed"))
    if theirs is not None and ours in ("shared", "mixed") and theirs != ours and theirs != "shared":
        raise TopologyInvalid(
            why=f"The image's hw_cpu_policy {theirs} goes beyond the flavor's hw:cpu_policy {ours}; "
            "use another flavor or another image."
        )
    found = ours or theirs
    return cast("CpuPolicy | None", _requested(wishes, found))


def _requested(wishes: Wishes, policy: str | None) -> str | None:
    """The policy that explicit resources:VCPU or resources:PCPU stand for."""
    amounts = {"VCPU": 0, "PCPU": 0}
    for key, value in wishes.extra_specs.items():
        match = _CPU_REQUEST.fullmatch(key)
        if match and value.strip().isdigit():
            amounts[match[1]] += int(value)
    if not any(amounts.values()):
        return policy
    if policy is not None:
        raise TopologyInvalid(why="A flavor with a CPU policy may not ask for resources:VCPU or resources:PCPU too.")
    if all(amounts.values()):
        raise TopologyInvalid(why="A flavor may ask for resources:VCPU or for resources:PCPU, not for both.")
    if not amounts["PCPU"]:
        return "shared"
    expected = wishes.cpus + int(wishes.flavor("emulator_threads_policy") == "isolate")
    if amounts["PCPU"] != expected:
        raise TopologyInvalid(why=f"The flavor asks for resources:PCPU={amounts['PCPU']}; it must be {expected}.")
    return "dedicated"


def _thread_policy(wishes: Wishes) -> ThreadPolicy | None:
    policies = ("prefer", "isolate", "require")
    ours = _one_of(wishes.flavor("cpu_thread_policy"), "hw:cpu_thread_policy", policies)
    theirs = _one_of(wishes.image("cpu_thread_policy"), "hw_cpu_thread_policy", policies)
    if ours in ("isolate", "require") and theirs is not None and theirs != ours:
        raise TopologyInvalid(
            why=f"The image's hw_cpu_thread_policy {theirs} contradicts the flavor's hw:cpu_thread_policy {ours}."
        )
    found = ours or theirs
    trait = wishes.extra_specs.get(HYPERTHREADING) or wishes.properties.get(HYPERTHREADING)
    if trait not in ("required", "forbidden"):
        return cast("ThreadPolicy | None", found)
    if found is not None:
        raise TopologyInvalid(why="A CPU thread policy and the trait HW_CPU_HYPERTHREADING may not be set together.")
    return "require" if trait == "required" else "isolate"


def _emulator_policy(wishes: Wishes) -> EmulatorPolicy | None:
    found = wishes.flavor("emulator_threads_policy")
    return cast("EmulatorPolicy | None", _one_of(found, "hw:emulator_threads_policy", ("share", "isolate")))


def _realtime(wishes: Wishes, emulator: EmulatorPolicy | None) -> int:
    if wishes.flavor("cpu_realtime") not in TRUE:
        return 0
    every = (1 << wishes.cpus) - 1
    text = wishes.image("cpu_realtime_mask") or wishes.flavor("cpu_realtime_mask")
    chosen = parse(text, every=every) if text else every
    if chosen & ~every or not chosen:
        raise TopologyInvalid(why=f"The realtime mask {text} must name some of the {wishes.cpus} CPUs and no other.")
    if chosen == every and emulator is None:
        raise TopologyInvalid(
            why="Realtime needs a CPU that is not realtime (hw:cpu_realtime_mask), or hw:emulator_threads_policy."
        )
    return chosen


def _dedicated(wishes: Wishes) -> int:
    text = wishes.flavor("cpu_dedicated_mask")
    if text is None:
        return 0
    every = (1 << wishes.cpus) - 1
    chosen = parse(text, every=every)
    if not chosen or chosen & ~every or chosen == every:
        raise TopologyInvalid(
            why=f"hw:cpu_dedicated_mask {text} must name at least one of the {wishes.cpus} CPUs, not all, and no other."
        )
    return chosen


def _check_policy(policy: str | None, threads: str | None, emulator: str | None, realtime: int, dedicated: int) -> None:
    if dedicated and policy != "mixed":
        raise TopologyInvalid(why="hw:cpu_dedicated_mask needs hw:cpu_policy=mixed.")
    if policy == "mixed" and bool(realtime) == bool(dedicated):
        raise TopologyInvalid(why="hw:cpu_policy=mixed needs hw:cpu_dedicated_mask or realtime CPUs, and not both.")
    if policy in _PINNING:
        return
    for asked, what in (
        (threads, "A CPU thread policy"),
        (emulator == "isolate", "hw:emulator_threads_policy=isolate"),
        (realtime, "hw:cpu_realtime"),
    ):
        if asked:
            raise TopologyInvalid(why=f"{what} needs pinned CPUs: set hw:cpu_policy to dedicated or mixed.")


# -- memory


def _page_size(wishes: Wishes) -> int | None:
    ours, theirs = wishes.flavor("mem_page_size"), wishes.image("mem_page_size")
    asked = None if ours is None else page_size(ours)
    if theirs is None:
        return asked
    if asked not in (ANY, LARGE):
        raise TopologyInvalid(
            why=f"The image's hw_mem_page_size {theirs} needs a flavor whose hw:mem_page_size is any or large."
        )
    return page_size(theirs)


def page_size(text: str) -> int:
    """KiB, or SMALL, LARGE, ANY. A number without a unit is in KiB. TopologyInvalid."""
    words = {"small": SMALL, "large": LARGE, "any": ANY}
    if text.lower() in words:
        return words[text.lower()]
    match = _PAGE_SIZE.fullmatch(text)
    if match is None or not int(match[1]):
        raise TopologyInvalid(why=f"{text!r} is no page size: small, large, any, KiB, or a number with a unit (2MB).")
    amount, unit, suffix = int(match[1]), (match[2] or "").rstrip("i").upper(), match[3]
    if suffix is None:
        return amount
    size: int = amount * 1024 ** _UNITS[unit] // (8 if suffix in ("b", "bit") else 1)
    if size < 1024:
        raise TopologyInvalid(why=f"The page size {text} is smaller than one KiB.")
    return size // 1024


def _check_locked_memory(wishes: Wishes, size: int | None) -> None:
    ours, theirs = wishes.flavor("locked_memory"), wishes.image("locked_memory")
    if ours is not None and theirs is not None and (ours in TRUE) != (theirs in TRUE):
        raise TopologyInvalid(why="The flavor's hw:locked_memory and the image's hw_locked_memory must be equal.")
    if (ours in TRUE or theirs in TRUE) and size is None:
        raise TopologyInvalid(why="Locked memory needs a page size: set hw:mem_page_size.")


# -- cells


def _numa(wishes: Wishes, *, implied: bool) -> Numa | None:
    """The cells asked for; one where something else needs a topology, None where nothing does."""
    ours, theirs = wishes.flavor("numa_nodes"), wishes.image("numa_nodes")
    if ours is not None and theirs is not None:
        raise TopologyInvalid(why="The image may not set hw_numa_nodes where the flavor sets hw:numa_nodes.")
    count = _number(ours if ours is not None else theirs, "hw:numa_nodes")
    if count is None:
        if not implied:  # then hw:numa_cpus and hw:numa_mem mean nothing
            return None
        count = 1
    cpus = _listed(wishes, "numa_cpus")
    memory = _listed(wishes, "numa_mem")
    if count < 1:
        raise TopologyInvalid(why=f"hw:numa_nodes is {count}; it must be at least 1.")
    if not cpus and not memory:
        return Numa(count)
    if len(cpus) != count or len(memory) != count:
        raise TopologyInvalid(
            why=f"hw:numa_cpus.N and hw:numa_mem.N must be given for each of the {count} cells, or for none."
        )
    sizes = tuple(_number(text, "hw:numa_mem") or 0 for text in memory)
    return Numa(count, tuple(parse(text) for text in cpus), sizes)


def _listed(wishes: Wishes, name: str) -> list[str]:
    """The values `hw:name.0`, `hw:name.1` … as far as they go, of the flavor or of the image."""
    found = []
    for read in (wishes.flavor, wishes.image):
        row: list[str] = []
        while (value := read(f"{name}.{len(row)}")) is not None:
            row.append(value)
        found.append(row)
    if all(found):
        raise TopologyInvalid(why=f"The image may not set hw_{name} where the flavor sets hw:{name}.")
    return found[0] or found[1]


# -- words


def _word(value: Any) -> str | None:
    return None if value is None else str(value).strip()


def _one_of(value: str | None, name: str, words: tuple[str, ...]) -> str | None:
    if value is not None and value not in words:
        raise TopologyInvalid(why=f"{name} is {value!r}; it must be one of {', '.join(words)}.")
    return value


def _number(value: str | None, name: str) -> int | None:
    if value is None:
        return None
    try:
        return int(value)
    except ValueError:
        raise TopologyInvalid(why=f"{name} is {value!r}; it must be a number.") from None
