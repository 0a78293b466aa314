"""Networks and subnets: their attributes and rules."""

from __future__ import annotations

import ipaddress
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from kilonova.embedded.network import addresses, errors
from kilonova.embedded.network.attributes import (
    REQUIRED,
    Attribute,
    address,
    boolean,
    cidr,
    integer,
    many,
    maybe,
    one_of,
    record,
    text,
    uuid,
)
from kilonova.embedded.network.nouns import Caller, Noun, fetch
from kilonova.embedded.network.tables import (
    NETWORKS,
    PORTS,
    SUBNETS,
    allocations,
    floating_ips,
    networks,
    subnets,
)
from kilonova.embedded.store import Row

_NO_GATEWAY_GIVEN = "default"
_ME = sa.bindparam("me", type_=sa.String)
_SUBNETS_IN = (
    sa.select(SUBNETS.c.network_id, SUBNETS.c.id)
    .where(SUBNETS.c.network_id.in_(sa.bindparam("networks", type_=sa.String, expanding=True)))
    .order_by(SUBNETS.c.created_at, SUBNETS.c.id)
)
_PORTS_ON = (sa.select(sa.func.count()).select_from(PORTS)
             .where(PORTS.c.network_id == sa.bindparam("network", type_=sa.String)))  # fmt: skip


# -- networks ----------------------------------------------------------------------------------------------------


def _check_network(c: Connection, caller: Caller, noun: Noun, row: Row) -> None:
    _check_provider(row)
    noun.insert(c, row)


def _check_provider(row: Row) -> None:
    kind, physical, segment = row["network_type"], row["physical_network"], row["segmentation_id"]
    if kind == "vlan" and (physical is None or segment is None or segment > 4094):
        raise errors.InvalidInput(reason="a vlan network needs a physical network and a segmentation id up to 4094")
    if kind == "flat" and (physical is None or segment is not None):
        raise errors.InvalidInput(reason="a flat network has a physical network and no segmentation id")
    if kind not in ("vlan", "flat") and physical is not None:
        raise errors.InvalidInput(reason=f"a {kind} network has no physical network")


def _change_network(c: Connection, caller: Caller, row: Row, changes: Row) -> None:
    if row["shared"] and changes.get("shared") is False:
        foreign = c.execute(sa.select(PORTS.c.id).where(
            PORTS.c.network_id == row["id"], PORTS.c.project_id.not_in(("", row["project_id"]))).limit(1)).first()
        if foreign:
            raise errors.NetworkInUse("Other projects have ports on the network; it must stay shared.")
    inward = row["external"] and changes.get("external") is False
    if inward and floating_ips.find(c, {"floating_network_id": row["id"]}):
        raise errors.NetworkInUse("The network has floating IPs; it must stay external.")


def _delete_network(c: Connection, caller: Caller, row: Row, noun: Noun) -> None:
    count = c.execute(_PORTS_ON, {"network": row["id"]}).scalar_one()
    if count:
        raise errors.NetworkInUse(id=row["id"], count=count)
    subnets.delete(c, {"network_id": row["id"]})
    networks.delete(c, row["id"])


def _derive_network(c: Connection, rows: list[Row]) -> None:
    of: dict[str, list[str]] = {row["id"]: [] for row in rows}
    if of:
        for network, subnet in c.execute(_SUBNETS_IN, {"networks": list(of)}):
            of[network].append(subnet)
    for row in rows:
        row["subnets"] = of[row["id"]]


NETWORK = Noun(
    "network", "networks", networks, errors.NetworkNotFound,
    own=(
        Attribute("admin_state_up", boolean, True),
        Attribute("status", default="ACTIVE", set="never"),
        Attribute("shared", boolean, False, admin=True),
        Attribute("router:external", boolean, False, admin=True, column="external"),
        Attribute("is_default", boolean, False, admin=True),
        Attribute("port_security_enabled", boolean, True),
        Attribute("mtu", integer(68, 9216), 1500),
        Attribute("provider:network_type", one_of("local", "flat", "vlan", "vxlan", "gre", "geneve"), "local",
                  set="create", admin=True, hidden=True, column="network_type"),
        Attribute("provider:physical_network", maybe(text(64)), None,
                  set="create", admin=True, hidden=True, column="physical_network"),
        Attribute("provider:segmentation_id", maybe(integer(1, 2**24 - 1)), None,
                  set="create", admin=True, hidden=True, column="segmentation_id"),
        Attribute("subnets", default=(), set="never", column=""),
        Attribute("ipv4_address_scope", set="never", column=""),
        Attribute("ipv6_address_scope", set="never", column=""),
    ),
    shared=lambda: sa.or_(NETWORKS.c.shared, NETWORKS.c.external),
    create=_check_network, update=_change_network, delete=_delete_network, derive=_derive_network,
)  # fmt: skip


# -- subnets -----------------------------------------------------------------------------------------------------


def _create_subnet(c: Connection, caller: Caller, noun: Noun, row: Row) -> None:
    network = fetch(c, caller, NETWORK, row["network_id"], lock=True)
    if network["project_id"] != caller.project_id and not caller.privileged:
        raise errors.PolicyNotAuthorized(action=f"making a subnet on network {network['id']}")
    if network["project_id"] != row["project_id"] and not caller.privileged:
        raise errors.PolicyNotAuthorized(action="making a subnet for another project")
    span = ipaddress.ip_network(row["cidr"])
    _check_family(row, span)
    for other in addresses.subnets_of(c, network["id"]):
        if span.version == other["ip_version"] and span.overlaps(ipaddress.ip_network(other["cidr"])):
            raise errors.InvalidInput(reason=f"Requested subnet with cidr: {span} for network: {network['id']} "
                                             "overlaps with another subnet")  # fmt: skip
    if row["gateway_ip"] == _NO_GATEWAY_GIVEN:
        row["gateway_ip"] = str(span[1] if span.num_addresses > 2 else span[0])
    _check_gateway(row["gateway_ip"], span)
    if row["allocation_pools"] is None:
        row["allocation_pools"] = addresses.default_pools(span, row["gateway_ip"])
    else:
        addresses.check_pools(span, row["allocation_pools"], row["gateway_ip"])
    noun.insert(c, row)


def _check_family(row: Row, span: addresses.Network) -> None:
    if span.version != row["ip_version"]:
        raise errors.InvalidInput(reason=f"the range {span} is not of IP version {row['ip_version']}")
    modes = row["ipv6_ra_mode"], row["ipv6_address_mode"]
    if span.prefixlen == 0:
        raise errors.InvalidInput(reason="a range of the whole address space cannot be a subnet")
    if modes != (None, None):
        if span.version == 4:
            raise errors.InvalidInput(reason="ipv6_ra_mode and ipv6_address_mode are for IPv6")
        if not row["enable_dhcp"]:
            raise errors.InvalidInput(reason="ipv6_ra_mode and ipv6_address_mode need enable_dhcp")
        if None not in modes and modes[0] != modes[1]:
            raise errors.InvalidInput(reason="ipv6_ra_mode and ipv6_address_mode must be equal when both are given")
        if modes[1] in addresses.AUTOMATIC_MODES and span.prefixlen != 64:
            raise errors.InvalidInput(reason="automatic addresses need a /64")


def _check_gateway(gateway: str | None, span: addresses.Network) -> None:
    if gateway is None:
        return
    at = ipaddress.ip_address(gateway)
    low, high = addresses.usable(span)
    local = at.version == 6 and at.is_link_local
    inside = low <= int(at) <= high or (at.version == 6 and at == span.network_address)
    if not local and (at.version != span.version or not inside):
        raise errors.InvalidInput(reason=f"the gateway {gateway} is not an address of {span}")


def _change_subnet(c: Connection, caller: Caller, row: Row, changes: Row) -> None:
    span = ipaddress.ip_network(row["cidr"])
    gateway = changes.get("gateway_ip", row["gateway_ip"])
    if gateway == _NO_GATEWAY_GIVEN:
        raise errors.InvalidInput(reason="'gateway_ip': 'default' is not an IP address")
    if "gateway_ip" in changes:
        _check_gateway(gateway, span)
        used = row["gateway_ip"] and allocations.find(
            c, {"subnet_id": row["id"], "key": addresses.key_of(row["gateway_ip"])})  # fmt: skip
        if used and gateway != row["gateway_ip"]:
            raise errors.SubnetInUse(f"The gateway {row['gateway_ip']} of subnet {row['id']} is used by a port.")
    if changes.get("allocation_pools", row) is None:
        raise errors.InvalidInput(reason="'allocation_pools': a list is needed")
    if "gateway_ip" in changes or "allocation_pools" in changes:
        addresses.check_pools(span, changes.get("allocation_pools") or row["allocation_pools"], gateway)
        changes["next_key"] = None


def _delete_subnet(c: Connection, caller: Caller, row: Row, noun: Noun) -> None:
    if allocations.find(c, {"subnet_id": row["id"]}):
        raise errors.SubnetInUse(id=row["id"])
    subnets.delete(c, row["id"])


def _gateway(value: Any) -> str | None:
    return None if value in (None, "") else address(value)


_POOL = record({"start": address, "end": address}, ("start", "end"))
_MODE = maybe(one_of("slaac", "dhcpv6-stateful", "dhcpv6-stateless"))
SUBNET = Noun(
    "subnet", "subnets", subnets, errors.SubnetNotFound,
    own=(
        Attribute("network_id", uuid, REQUIRED, set="create"),
        Attribute("ip_version", integer(4, 6), REQUIRED, set="create"),
        Attribute("cidr", cidr, REQUIRED, set="create"),
        Attribute("gateway_ip", _gateway, _NO_GATEWAY_GIVEN),
        Attribute("allocation_pools", maybe(many(_POOL)), None),
        Attribute("enable_dhcp", boolean, True),
        Attribute("dns_nameservers", many(address, 5), ()),
        Attribute("host_routes", many(record({"destination": cidr, "nexthop": address}, ("destination", "nexthop")),
                                      20), ()),
        Attribute("ipv6_ra_mode", _MODE, None, set="create"),
        Attribute("ipv6_address_mode", _MODE, None, set="create"),
        Attribute("subnetpool_id", one_of(None), None, set="create", column=""),
        Attribute("service_types", default=(), set="never", column=""),
    ),
    shared=lambda: SUBNETS.c.network_id.in_(
        sa.select(NETWORKS.c.id).where(sa.or_(NETWORKS.c.project_id == _ME, NETWORKS.c.shared))),
    create=_create_subnet, update=_change_subnet, delete=_delete_subnet,
)  # fmt: skip
