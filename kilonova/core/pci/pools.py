"""Pools: a host's free devices counted by kind, and what requests take from them.

Devices are alike when vendor, product, type, NUMA node, tags and provider are. Where a physical function is offered
beside its virtual ones, each such family is apart: taking one of them takes the physical one away, and the other way
round. A request for no particular type never gets a physical function or a vDPA device.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import msgspec
from msgspec.structs import replace

from kilonova.core.pci.devices import DeviceType, Offered
from kilonova.core.pci.requests import NumaPolicy, PciRequest

_ONLY_BY_NAME: Final = frozenset({"type-PF", "type-VDPA"})
_NO_MATTER: Final = frozenset({"resource_class", "traits"})
"""Words of an alias that are Placement's to satisfy; a pool is found by the provider then."""


class Pool(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """So many free devices of one kind. family: the physical function's address, where that is offered as well.

    provider: the address of the device's resource provider, where providers count.
    """

    vendor_id: str
    product_id: str
    count: int
    dev_type: DeviceType = "type-PCI"
    numa_node: int | None = None
    tags: tuple[tuple[str, str], ...] = ()
    family: str | None = None
    provider: str | None = None

    @property
    def kind(self) -> Pool:
        """The pool whatever its number of devices."""
        return replace(self, count=0)


Pools = tuple[Pool, ...]


@dataclass(frozen=True, slots=True)
class Near:
    """Where the guest's memory is: numbers of the cells, and of every cell that shares a socket with one of them."""

    cells: frozenset[int]
    sockets: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class NoDevice:
    """Why devices are not to be had: a sentence with `{}` for each number."""

    reason: str
    numbers: tuple[object, ...]

    def __str__(self) -> str:
        return self.reason.format(*self.numbers)


def kind_of(one: Offered, families: frozenset[str], *, providers: bool = False) -> Pool:
    """The kind of a device: a pool of none. families: addresses of physical functions offered beside virtual ones."""
    device = one.device
    head = device.parent or device.address
    return Pool(
        device.vendor_id, device.product_id, 0, device.dev_type, device.numa_node, tuple(sorted(one.tags.items())),
        head if head in families else None, head if providers else None,
    )  # fmt: skip


def families_of(devices: Iterable[Offered]) -> frozenset[str]:
    """Addresses of the physical functions among the devices of which a virtual one is among them as well."""
    rows = list(devices)
    physical = {row.device.address for row in rows if row.device.dev_type == "type-PF"}
    return frozenset(row.device.parent for row in rows if row.device.parent in physical)


def pools_of(devices: Sequence[Offered], taken: Iterable[str] = (), *, providers: bool = False) -> Pools:
    """What is left of the devices when those at the addresses `taken` are gone, ordered."""
    families = families_of(devices)
    count = Counter(kind_of(row, families, providers=providers) for row in free(devices, taken))
    return tuple(sorted((replace(kind, count=number) for kind, number in count.items()), key=msgspec.json.encode))


def free(devices: Sequence[Offered], taken: Iterable[str]) -> list[Offered]:
    """The devices not taken, and not kept back because their physical or a virtual function is."""
    gone = frozenset(taken)
    used_parents = {row.device.parent for row in devices if row.device.address in gone and row.device.parent}
    return [
        row for row in devices
        if row.device.address not in gone and row.device.address not in used_parents
        and row.device.parent not in gone
    ]  # fmt: skip


def take(
    pools: Pools, requests: Sequence[PciRequest], near: Near | None = None,
    providers: Mapping[str, Sequence[str]] | None = None,
) -> tuple[Pools, list[list[tuple[Pool, int]]]] | NoDevice:  # fmt: skip
    """What is left after all requests, and per request how many of which kind; NoDevice when one is not to be had.

    near: where the guest's cells are, None for a guest without. providers: per request id, the providers whose devices
    it must take, one for each device.
    """
    given = []
    for request in requests:
        named = None if providers is None else providers.get(request.id)
        found = _take_one(pools, request, near, named)
        if isinstance(found, NoDevice):
            return found
        pools, picks = found
        given.append(picks)
    return pools, given


def _take_one(
    pools: Pools, request: PciRequest, near: Near | None, providers: Sequence[str] | None
) -> tuple[Pools, list[tuple[Pool, int]]] | NoDevice:
    policy = request.numa_policy or "legacy"
    owed = None if providers is None else Counter(providers)
    picked: Counter[Pool] = Counter()
    left = pools
    for _ in range(request.count):
        usable = [
            pool for pool in left
            if _matches(pool, request) and _near(pool, near, policy) and (owed is None or owed[pool.provider or ""] > 0)
        ]  # fmt: skip
        if not usable:
            return _lacking(pools, request, near, policy, picked.total())
        pool = min(usable, key=lambda pool: _order(pool, near, left))
        left = _less(left, pool)
        picked[pool.kind] += 1
        if owed is not None:
            owed[pool.provider or ""] -= 1
    return left, list(picked.items())


def _lacking(pools: Pools, request: PciRequest, near: Near | None, policy: NumaPolicy, has: int) -> NoDevice:
    name = request.alias or f"port {request.requester}"
    alike = [pool for pool in pools if _matches(pool, request)]
    anywhere = sum(pool.count for pool in alike)
    local = sum(pool.count for pool in alike if _near(pool, near, policy))
    if local < anywhere:
        return NoDevice("{} of its {} free devices of {} are where policy {} wants them, wanted {}",
                        (local, anywhere, name, policy, request.count))  # fmt: skip
    return NoDevice("it has {} free devices of {}, wanted {}", (has, name, request.count))


def _matches(pool: Pool, request: PciRequest) -> bool:
    return any(_is_a(pool, spec) for spec in request.specs)


def _is_a(pool: Pool, spec: Mapping[str, str]) -> bool:
    if pool.dev_type in _ONLY_BY_NAME and spec.get("dev_type") != pool.dev_type:
        return False
    own = dict.fromkeys(("live_migratable", "remote_managed", "trusted"), "false") | dict(pool.tags)
    if own["remote_managed"] == "true" and spec.get("remote_managed") != "true":
        return False
    own |= {"vendor_id": pool.vendor_id, "product_id": pool.product_id, "dev_type": pool.dev_type}
    return all(own.get(key) == value for key, value in spec.items() if key not in _NO_MATTER)


def _near(pool: Pool, near: Near | None, policy: NumaPolicy) -> bool:
    if near is None or policy == "preferred":
        return True
    if policy == "socket":
        return pool.numa_node in near.sockets or pool.numa_node in near.cells
    return pool.numa_node in near.cells or (policy == "legacy" and pool.numa_node is None)


def _order(pool: Pool, near: Near | None, pools: Pools) -> tuple[bool, bool, int, bytes]:
    """Near ones first; late those that would break up a physical function with virtual ones; few tags before many."""
    far = near is not None and pool.numa_node not in near.cells
    whole = pool.family is not None and any(
        other.family == pool.family and other.dev_type == "type-PF" for other in pools
    )
    return far, whole, len(pool.tags), msgspec.json.encode(pool.kind)


def _less(pools: Pools, taken: Pool) -> Pools:
    """The pools without one device of `taken`, and without what is no more to be had because of it."""
    found = []
    for pool in pools:
        if pool == taken:
            pool = replace(pool, count=pool.count - 1)
        elif taken.family is not None and pool.family == taken.family and "type-PF" in (pool.dev_type, taken.dev_type):
            continue
        if pool.count:
            found.append(pool)
    return tuple(found)


# -- text


def to_text(pools: Pools) -> str:
    """Pools as JSON; equal pools have equal texts."""
    return msgspec.json.encode(pools).decode()


_decode = msgspec.json.Decoder(Pools).decode


@lru_cache(maxsize=4096)
def from_text(data: str) -> Pools:
    """The pools of a text of `to_text`; hosts of one kind and filling share a text, so it is remembered."""
    return _decode(data)
