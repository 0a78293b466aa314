"""The insides of a simulated host: NUMA nodes, cores and threads, memory pages, PCI devices in presets.

CPUs are numbered as on common servers: the first threads of all cores, then the second ones. Devices are dealt to the
nodes in turn.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from kilonova.core.errors import Invalid
from kilonova.core.numa.cpus import of
from kilonova.core.pci.devices import PciDevice
from kilonova.virt.driver import CellFacts

SMALL_KB = 4


class HardwareInvalid(Invalid):
    """`[simulated]` describes a host that cannot be; the agent does not start."""

    code, message = "hardware_invalid", "[simulated]{option} is {value!r}: {why}."


@dataclass(frozen=True, slots=True)
class Hardware:
    """cells: NUMA nodes, 0 for a host that tells of none. threads: of each core. pages: per node (KiB, number).

    devices: (preset, number).
    """

    cells: int = 0
    threads: int = 1
    sockets: int = 0
    pages: tuple[tuple[int, int], ...] = ()
    devices: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class _Preset:
    """One card. functions: how many virtual functions it has, and their product."""

    vendor_id: str
    product_id: str
    functions: int = 0
    function_id: str = ""


PRESETS = {
    "gpu": _Preset("10de", "20b5"),
    "nvme": _Preset("144d", "a80a"),
    "nic": _Preset("8086", "1572", 4, "154c"),
}


def from_conf(group: Any) -> Hardware:
    """From the option group `[simulated]`. HardwareInvalid."""
    pages = tuple(_pair("hugepages", text) for text in group.hugepages)
    devices = []
    for text in group.pci_devices:
        name, _, number = text.partition(":")
        if name not in PRESETS or not re.fullmatch(r"\d*", number):
            raise HardwareInvalid(option="pci_devices", value=text, why=f"it is preset:number of {', '.join(PRESETS)}")
        devices.append((name, int(number or 1)))
    hardware = Hardware(group.numa_cells, group.cpu_threads, group.cpu_sockets, pages, tuple(devices))
    cells(hardware, group.vcpus, group.memory_mb)
    return hardware


def _pair(option: str, text: str) -> tuple[int, int]:
    match = re.fullmatch(r"(\d+):(\d+)", text)
    if match is None or not int(match[1]):
        raise HardwareInvalid(option=option, value=text, why="it is KiB:number")
    return int(match[1]), int(match[2])


def cells(hardware: Hardware, cpus: int, memory_mb: int) -> tuple[CellFacts, ...]:
    """The NUMA nodes of a host of so many CPUs and MiB. HardwareInvalid when they cannot be dealt evenly."""
    count = hardware.cells
    if not count:
        return ()
    cores, rest = divmod(cpus, count * hardware.threads)
    if rest or not cores:
        raise HardwareInvalid(option="vcpus", value=cpus, why=f"{count} nodes with {hardware.threads} threads a core "
                                                              "cannot have equally many")  # fmt: skip
    huge_kb = sum(size * number for size, number in hardware.pages)
    small, memory = (memory_mb // count * 1024 - huge_kb) // SMALL_KB, memory_mb // count
    if small < 0:
        raise HardwareInvalid(option="hugepages", value=huge_kb, why=f"a node has {memory} MiB of memory")
    sockets = hardware.sockets or count
    return tuple(
        CellFacts(
            number, of(cpu for core in _cores(number, cores, count, hardware.threads) for cpu in core),
            tuple(of(core) for core in _cores(number, cores, count, hardware.threads)), memory,
            ((SMALL_KB, small), *sorted(hardware.pages)), number * sockets // count,
        )
        for number in range(count)
    )  # fmt: skip


def _cores(cell: int, cores: int, cells_: int, threads: int) -> Iterable[list[int]]:
    for core in range(cores):
        first = cell * cores + core
        yield [first + thread * cores * cells_ for thread in range(threads)]


def devices(hardware: Hardware) -> tuple[PciDevice, ...]:
    """The devices, each card at a bus of its own."""
    found: list[PciDevice] = []
    cards = [name for name, number in hardware.devices for _ in range(number)]
    for number, name in enumerate(cards):
        preset, bus = PRESETS[name], f"0000:{0x80 + number:02x}"
        node = number % hardware.cells if hardware.cells else None
        kind: Any = "type-PF" if preset.functions else "type-PCI"
        first = f"{bus}:00.0"
        devname = f"{name}{number}" if preset.functions else None
        found.append(PciDevice(first, preset.vendor_id, preset.product_id, kind, node, devname=devname))
        found += [
            PciDevice(f"{bus}:02.{function}", preset.vendor_id, preset.function_id, "type-VF", node, first)
            for function in range(preset.functions)
        ]
    return tuple(found)
