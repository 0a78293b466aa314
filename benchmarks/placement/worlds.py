"""The data that is measured: hosts as one provider each, hosts as trees with NUMA and SR-IOV, and one wide tree."""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator
from dataclasses import dataclass

SHAPES = ("flat", "nested", "wide")
CUSTOM_TRAITS = tuple(f"CUSTOM_BENCH_T{n:02}" for n in range(20))
NETS = ("CUSTOM_BENCH_NET_A", "CUSTOM_BENCH_NET_B")
WIDE_CLASS = "CUSTOM_BENCH_WIDE"
WIDTH = 8
PROJECTS = tuple(f"bench-project-{n}" for n in range(10))

_COMMON = "HW_CPU_X86_AVX2"
_TRAITS = (
    "HW_CPU_X86_AVX", "HW_CPU_X86_SSE", "HW_CPU_X86_SSE2", "HW_CPU_X86_SSE41", "HW_CPU_X86_SSE42", "HW_CPU_X86_BMI",
    "HW_CPU_X86_BMI2", "HW_CPU_X86_VMX", "HW_CPU_X86_AESNI", "STORAGE_DISK_SSD", "STORAGE_DISK_HDD",
    "COMPUTE_VOLUME_MULTI_ATTACH", "COMPUTE_TRUSTED_CERTS", "COMPUTE_STATUS_DISABLED", "HW_NIC_DCB_PFC",
    "HW_NIC_SRIOV", "HW_GPU_API_VULKAN", "HW_CPU_HYPERTHREADING", "COMPUTE_NET_ATTACH_INTERFACE",
)  # fmt: skip
_SPACE = uuid.UUID("0f4ad1f0-6b5c-5c52-9b55-5b8a3f0c1f6e")


@dataclass(frozen=True, slots=True)
class Stock:
    """An inventory of which one request may take everything."""

    total: int
    reserved: int = 0
    ratio: float = 1.0

    @property
    def most(self) -> int:
        """The largest allocation."""
        return self.total - self.reserved

    @property
    def capacity(self) -> int:
        """What all allocations together may have."""
        return int(self.most * self.ratio)


@dataclass(frozen=True, slots=True)
class Provider:
    """One resource provider; parent is a UUID."""

    uuid: str
    name: str
    parent: str | None
    stock: dict[str, Stock]
    traits: tuple[str, ...] = ()
    aggregates: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class World:
    """So many hosts of a shape. Every UUID follows from the shape and the number of the host."""

    shape: str
    hosts: int

    def uuid(self, kind: str, *numbers: int) -> str:
        """Of a host (`root`), a part of it or an aggregate."""
        return str(uuid.uuid5(_SPACE, f"{self.shape} {kind} {numbers}"))

    @property
    def zones(self) -> list[str]:
        """Aggregates of a third of the hosts each."""
        return [self.uuid("zone", n) for n in range(3)]

    @property
    def groups(self) -> list[str]:
        """Aggregates of a tenth of the hosts each."""
        return [self.uuid("group", n) for n in range(10)]

    @property
    def racks(self) -> list[str]:
        """Aggregates of 20 hosts each."""
        return [self.uuid("rack", n) for n in range(max(1, self.hosts // 20))]

    def trees(self) -> Iterator[list[Provider]]:
        """Every tree, parents before children."""
        if self.shape == "wide":
            yield self._wide()
            return
        zones, racks, groups = self.zones, self.racks, self.groups
        for n in range(self.hosts):
            aggregates = (zones[n % 3], racks[n % len(racks)], groups[n // 3 % 10])
            yield [self._flat(n, aggregates)] if self.shape == "flat" else self._nested(n, aggregates)

    def claim(self, n: int, vcpus: int = 1) -> dict[str, dict[str, int]]:
        """What a small server on host `n` takes, by provider and class."""
        if self.shape == "flat":
            return {self.uuid("root", n): {"VCPU": vcpus, "MEMORY_MB": 512, "DISK_GB": 5}}
        return {self.uuid("root", n): {"DISK_GB": 5}, self.processor(n): {"VCPU": vcpus, "MEMORY_MB": 512}}

    def processor(self, n: int) -> str:
        """The provider of host `n` whose VCPU `claim` takes."""
        return self.uuid("root", n) if self.shape == "flat" else self.uuid("numa", n, n % 2)

    @property
    def processors(self) -> Stock:
        """What there is of VCPU on `processor`."""
        return Stock(64, ratio=4.0) if self.shape == "flat" else Stock(32, ratio=4.0)

    def _flat(self, n: int, aggregates: tuple[str, ...]) -> Provider:
        stock = {"VCPU": self.processors, "MEMORY_MB": Stock(262144, 4096), "DISK_GB": Stock(4000, 100)}
        return Provider(self.uuid("root", n), f"flat-{n:06}", None, stock, _traits(n), aggregates)

    def _nested(self, n: int, aggregates: tuple[str, ...]) -> list[Provider]:
        """A host with the disk, two NUMA nodes with processors and memory, and below each a function of a network."""
        root = self.uuid("root", n)
        tree = [Provider(root, f"nested-{n:06}", None, {"DISK_GB": Stock(4000, 100)}, _traits(n), aggregates)]
        for side, net in enumerate(NETS):
            numa, name = self.uuid("numa", n, side), f"nested-{n:06}-{side}"
            stock = {"VCPU": self.processors, "MEMORY_MB": Stock(131072, 2048)}
            tree.append(Provider(numa, name, root, stock, ("HW_NUMA_ROOT",)))
            functions = {"SRIOV_NET_VF": Stock(16)}
            tree.append(Provider(self.uuid("pf", n, side), f"{name}-pf", numa, functions, ("HW_NIC_SRIOV", net)))
        return tree

    def _wide(self) -> list[Provider]:
        root = self.uuid("root", 0)
        children = [
            Provider(self.uuid("child", n), f"wide-{n}", root, {WIDE_CLASS: Stock(1)}) for n in range(WIDTH)
        ]
        return [Provider(root, "wide", None, {}), *children]


def _traits(n: int) -> tuple[str, ...]:
    """Ten, of which nearly every host has one in common."""
    chance = random.Random(n)
    standard = chance.sample(_TRAITS[1:], 4)
    return (_COMMON if n % 10 else _TRAITS[0], *standard, *chance.sample(CUSTOM_TRAITS, 5))
