"""Floating IPs: an address of an external network, led by a router to a port's fixed address."""

from __future__ import annotations

import ipaddress
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from kilonova.embedded.network import errors
from kilonova.embedded.network import ports as port_rules
from kilonova.embedded.network.attributes import REQUIRED, Attribute, address, maybe, uuid
from kilonova.embedded.network.networks import NETWORK
from kilonova.embedded.network.nouns import Caller, Noun, fetch
from kilonova.embedded.network.ports import FLOATING, PORT, ROUTER_INTERFACE
from kilonova.embedded.network.tables import ALLOCATIONS, PORTS, ROUTERS, floating_ips, ports
from kilonova.embedded.store import Row

_ROUTERS_ON = (
    sa.select(ROUTERS.c.id, ROUTERS.c.external_gateway_info)
    .join(PORTS, PORTS.c.device_id == ROUTERS.c.id)
    .join(ALLOCATIONS, ALLOCATIONS.c.port_id == PORTS.c.id)
    .where(PORTS.c.device_owner == ROUTER_INTERFACE)
    .where(ALLOCATIONS.c.subnet_id == sa.bindparam("subnet", type_=sa.String))
    .order_by(ROUTERS.c.created_at, ROUTERS.c.id)
)
_FREE: Row = {"port_id": None, "fixed_ip_address": None, "router_id": None, "status": "DOWN"}


def _create(c: Connection, caller: Caller, noun: Noun, row: Row) -> None:
    network = fetch(c, caller, NETWORK, row["floating_network_id"])
    if not network["external"]:
        raise errors.HTTPBadRequest(f"Network {network['id']} is not an external network.")
    port = port_rules.internal(network, FLOATING, row["id"], "", fixed_ips=_wanted(row))
    port_rules.add(c, network, port, versions=(4,))
    if not port["fixed_ips"]:
        raise errors.IpAddressGenerationFailure(network=network["id"])
    row["own_port_id"], row["floating_ip_address"] = port["id"], port["fixed_ips"][0]["ip_address"]
    if row["port_id"] is None and row["fixed_ip_address"] is not None:
        raise errors.HTTPBadRequest("fixed_ip_address needs a port_id.")
    row |= _FREE if row["port_id"] is None else _associate(c, caller, row, row["port_id"], row["fixed_ip_address"])
    noun.insert(c, row)


def _wanted(row: Row) -> list[dict[str, str]] | None:
    wish = {}
    if row.get("floating_ip_address") is not None:
        wish["ip_address"] = row["floating_ip_address"]
    if row.get("subnet_id") is not None:
        wish["subnet_id"] = row["subnet_id"]
    return [wish] if wish else None


def _associate(c: Connection, caller: Caller, row: Row, port_id: str, fixed: str | None) -> Row:
    port = fetch(c, caller, PORT, port_id)
    if port["project_id"] != row["project_id"] and not caller.privileged:
        raise errors.HTTPBadRequest(f"Port {port_id} belongs to another project than the floating IP.")
    own = [one for one in port["fixed_ips"] if ipaddress.ip_address(one["ip_address"]).version == 4]
    chosen = next((one for one in own if fixed in (None, one["ip_address"])), None)
    if chosen is None:
        raise errors.HTTPBadRequest(f"Port {port_id} has no fixed IPv4 address{f' {fixed}' if fixed else ''}.")
    for other in floating_ips.find(c, {"port_id": port_id, "fixed_ip_address": chosen["ip_address"]}):
        if other["id"] != row["id"]:
            raise errors.FloatingIPPortAlreadyAssociated(ip=chosen["ip_address"], port=port_id)
    leading = c.execute(_ROUTERS_ON, {"subnet": chosen["subnet_id"]}).all()
    router = next((key for key, info in leading if info and info["network_id"] == row["floating_network_id"]), None)
    if router is None:
        raise errors.ExternalGatewayForFloatingIPNotFound(
            subnet=chosen["subnet_id"], network=row["floating_network_id"], port=port_id)  # fmt: skip
    _tell(caller, port)
    return {"port_id": port_id, "fixed_ip_address": chosen["ip_address"], "router_id": router, "status": "ACTIVE"}


def _tell(caller: Caller, port: Row | None) -> None:
    if port is not None and port_rules.serves_server(port):
        caller.events.append(port_rules.event("network-changed", port))


def _change(c: Connection, caller: Caller, row: Row, changes: Row) -> None:
    if "port_id" not in changes:
        if changes.get("fixed_ip_address") is not None and row["port_id"] is None:
            raise errors.HTTPBadRequest("fixed_ip_address needs a port_id.")
        if "fixed_ip_address" in changes:
            changes["port_id"] = row["port_id"]
        else:
            return
    if row["port_id"] is not None and changes["port_id"] != row["port_id"]:
        _tell(caller, ports.get(c, row["port_id"]))
    if changes["port_id"] is None:
        changes |= _FREE
    else:
        changes |= _associate(c, caller, row, changes["port_id"], changes.get("fixed_ip_address"))


def _delete(c: Connection, caller: Caller, row: Row, noun: Noun) -> None:
    if row["port_id"] is not None:
        _tell(caller, ports.get(c, row["port_id"]))
    floating_ips.delete(c, row["id"])
    ports.delete(c, row["own_port_id"])


def _ipv4(value: Any) -> str:
    found = address(value)
    if ":" in found:
        raise ValueError(f"{value!r} is not an IPv4 address")
    return found


FLOATING_IP = Noun(
    "floatingip", "floatingips", floating_ips, errors.FloatingIPNotFound,
    own=(
        Attribute("floating_network_id", uuid, REQUIRED, set="create"),
        Attribute("floating_ip_address", maybe(_ipv4), None, set="create", admin=True),
        Attribute("subnet_id", maybe(uuid), None, set="create", hidden=True, column=""),
        Attribute("port_id", maybe(uuid), None),
        Attribute("fixed_ip_address", maybe(_ipv4), None),
        Attribute("router_id", set="never"),
        Attribute("status", default="DOWN", set="never"),
    ),
    create=_create, update=_change, delete=_delete, nameless=True,
)  # fmt: skip
