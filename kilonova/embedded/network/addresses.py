"""Addresses: the pools of a subnet, and which address a port gets.

Handing out is cheap however large the network is: each subnet remembers where its search ended, looks at what is
taken from there on, and goes round once. The subnets' rows are locked meanwhile, and (subnet, address) is unique.
"""

from __future__ import annotations

import ipaddress
import itertools
from collections.abc import Iterable, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from kilonova.embedded.network import errors
from kilonova.embedded.network.tables import ALLOCATIONS, SUBNETS, allocations, subnets
from kilonova.embedded.store import Row

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
FixedIp = dict[str, str]  # {"subnet_id", "ip_address"}
AUTOMATIC_MODES = ("slaac", "dhcpv6-stateless")

_WINDOW = 256
_SUBNETS_OF = (sa.select(SUBNETS).where(SUBNETS.c.network_id == sa.bindparam("network", type_=sa.String))
               .order_by(SUBNETS.c.created_at, SUBNETS.c.id))  # fmt: skip
_LOCKED_SUBNETS_OF = _SUBNETS_OF.with_for_update()
_TAKEN = (
    sa.select(ALLOCATIONS.c.key)
    .where(ALLOCATIONS.c.subnet_id == sa.bindparam("subnet", type_=sa.String))
    .where(ALLOCATIONS.c.key.between(sa.bindparam("low", type_=sa.String), sa.bindparam("high", type_=sa.String)))
    .order_by(ALLOCATIONS.c.key)
    .limit(_WINDOW)
)


def key_of(address: str | Address | int) -> str:
    """The address as 32 hex digits, so that text order is numeric order for both families."""
    number = address if isinstance(address, int) else int(ipaddress.ip_address(address))
    return f"{number:032x}"


def usable(network: Network) -> tuple[int, int]:
    """First and last address that a host may have (IPv4: not the network's nor broadcast; IPv6: not the first)."""
    first, last = int(network.network_address), int(network.broadcast_address)
    if network.prefixlen >= network.max_prefixlen - 1:
        return first, last
    return first + 1, last - (1 if network.version == 4 else 0)


def default_pools(network: Network, gateway: str | None) -> list[dict[str, str]]:
    """The whole range but for the gateway."""
    kind = ipaddress.ip_address
    low, high = usable(network)
    cut = int(kind(gateway)) if gateway else None
    parts = [(low, high)] if cut is None or not low <= cut <= high else [(low, cut - 1), (cut + 1, high)]
    whole = type(network.network_address)
    return [{"start": str(whole(a)), "end": str(whole(b))} for a, b in parts if a <= b]


def check_pools(network: Network, pools: Sequence[dict[str, str]], gateway: str | None) -> None:
    """Raises InvalidAllocationPool, GatewayConflictWithAllocationPools."""
    low, high = usable(network)
    spans = sorted(_spans(pools))
    for pool, (start, end) in zip(pools, _spans(pools), strict=True):
        same = all(ipaddress.ip_address(pool[side]).version == network.version for side in ("start", "end"))
        if not same or not low <= start <= end <= high:
            raise errors.InvalidAllocationPool(**pool, reason=f"it must lie in {network}, start before end")
        if gateway and start <= int(ipaddress.ip_address(gateway)) <= end:
            raise errors.GatewayConflictWithAllocationPools(ip=gateway)
    for (_, end), (start, _) in itertools.pairwise(spans):
        if start <= end:
            raise errors.InvalidAllocationPool(start=pools[0]["start"], end=pools[-1]["end"], reason="pools overlap")


def _spans(pools: Iterable[dict[str, str]]) -> list[tuple[int, int]]:
    return [(int(ipaddress.ip_address(p["start"])), int(ipaddress.ip_address(p["end"]))) for p in pools]


def subnets_of(c: Connection, network_id: str, *, lock: bool = False) -> list[Row]:
    """The subnets of a network, oldest first."""
    found = c.execute(_LOCKED_SUBNETS_OF if lock else _SUBNETS_OF, {"network": network_id})
    return [dict(row) for row in found.mappings()]


def choose(
    c: Connection, network_id: str, mac: str, asked: Sequence[FixedIp] | None, held: Sequence[FixedIp] = (),
    versions: tuple[int, ...] = (4, 6),
) -> list[FixedIp]:  # fmt: skip
    """The addresses a port gets: what was asked for, or one of each family (of `versions`) the network has.

    `held` are those the port has already; they may be asked for again. Nothing is written but the subnets' places.
    Raises IpAddressInUse, IpAddressGenerationFailure, InvalidIpForNetwork, InvalidIpForSubnet, SubnetNotFound.
    """
    around = subnets_of(c, network_id, lock=True)
    if asked is None:
        return _one_of_each(c, network_id, [row for row in around if row["ip_version"] in versions], mac)
    got: list[FixedIp] = []
    free = [fixed for fixed in held if fixed not in asked]
    for wish in asked:
        if "ip_address" in wish:
            got.append(_exact(c, network_id, around, wish, held))
            continue
        subnet = next((row for row in around if row["id"] == wish.get("subnet_id")), None)
        if subnet is None:
            raise errors.SubnetNotFound(id=wish.get("subnet_id"))
        kept = next((fixed for fixed in free if fixed["subnet_id"] == subnet["id"]), None)
        if kept is not None:
            free.remove(kept)
        got.append(kept or _some(c, network_id, [subnet], mac))
    return got


def _one_of_each(c: Connection, network_id: str, around: list[Row], mac: str) -> list[FixedIp]:
    managed = [row for row in around if row["ipv6_address_mode"] not in AUTOMATIC_MODES]
    got = []
    for version in (4, 6):
        family = [row for row in managed if row["ip_version"] == version]
        if family:
            got.append(_some(c, network_id, family, mac))
    return got + [_some(c, network_id, [row], mac) for row in around if row not in managed]


def _exact(c: Connection, network_id: str, around: list[Row], wish: FixedIp, held: Sequence[FixedIp]) -> FixedIp:
    address = ipaddress.ip_address(wish["ip_address"])
    named = [row for row in around if wish.get("subnet_id") in (None, row["id"])]
    subnet = next((row for row in named if address in ipaddress.ip_network(row["cidr"])), None)
    if subnet is None:
        if "subnet_id" not in wish:
            raise errors.InvalidIpForNetwork(ip=str(address), network=network_id)
        if not named:
            raise errors.SubnetNotFound(id=wish["subnet_id"])
        raise errors.InvalidIpForSubnet(ip=str(address), subnet=wish["subnet_id"])
    low, high = usable(ipaddress.ip_network(subnet["cidr"]))
    if not low <= int(address) <= high:
        raise errors.InvalidIpForSubnet(ip=str(address), subnet=subnet["id"])
    found = {"subnet_id": subnet["id"], "ip_address": str(address)}
    if found not in held and allocations.find(c, {"subnet_id": subnet["id"], "key": key_of(address)}):
        raise errors.IpAddressInUse(ip=str(address), network=network_id)
    return found


def _some(c: Connection, network_id: str, family: list[Row], mac: str) -> FixedIp:
    for subnet in family:
        if subnet["ipv6_address_mode"] in AUTOMATIC_MODES:
            return {"subnet_id": subnet["id"], "ip_address": str(_from_mac(subnet["cidr"], mac))}
        number = _next_free(c, subnet)
        if number is not None:
            subnet["next_key"] = key_of(number + 1)
            subnets.update(c, subnet["id"], {"next_key": subnet["next_key"]})
            kind: Any = ipaddress.IPv4Address if subnet["ip_version"] == 4 else ipaddress.IPv6Address
            return {"subnet_id": subnet["id"], "ip_address": str(kind(number))}
    raise errors.IpAddressGenerationFailure(network=network_id)


def _next_free(c: Connection, subnet: Row) -> int | None:
    spans = _spans(subnet["allocation_pools"])
    place = int(subnet["next_key"], 16) if subnet["next_key"] else 0
    ahead = [(max(low, place), high) for low, high in spans if high >= place]
    behind = [(low, min(high, place - 1)) for low, high in spans if low < place]
    for low, high in ahead + behind:
        found = _gap(c, subnet["id"], low, high)
        if found is not None:
            return found
    return None


def _gap(c: Connection, subnet_id: str, low: int, high: int) -> int | None:
    while low <= high:
        taken = c.execute(_TAKEN, {"subnet": subnet_id, "low": key_of(low), "high": key_of(high)}).scalars().all()
        for key in taken:
            if int(key, 16) > low:
                return low
            low += 1
        if len(taken) < _WINDOW:
            return low if low <= high else None
    return None


def _from_mac(cidr: str, mac: str) -> ipaddress.IPv6Address:
    """The address that a host makes of its MAC (modified EUI-64, RFC 4291 appendix A)."""
    octets = [int(part, 16) for part in mac.split(":")]
    octets[0] ^= 2
    host = int.from_bytes(bytes([*octets[:3], 0xFF, 0xFE, *octets[3:]]))
    return ipaddress.IPv6Address(int(ipaddress.ip_network(cidr).network_address) | host)


def keep(c: Connection, port_id: str, fixed: Sequence[FixedIp]) -> None:
    """Store that the port holds these addresses. Raises Duplicate when another request was faster."""
    for one in fixed:
        allocations.insert(c, {"subnet_id": one["subnet_id"], "key": key_of(one["ip_address"]),
                               "ip_address": one["ip_address"], "port_id": port_id})  # fmt: skip


def give_back(c: Connection, port_id: str, fixed: Sequence[FixedIp]) -> None:
    """The port no longer holds these addresses."""
    for one in fixed:
        allocations.delete(c, {"subnet_id": one["subnet_id"], "key": key_of(one["ip_address"]), "port_id": port_id})
