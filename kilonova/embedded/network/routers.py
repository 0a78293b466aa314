"""Routers, their interfaces and gateways."""

from __future__ import annotations

import ipaddress
from typing import Any

from sqlalchemy.engine import Connection

from kilonova.embedded.network import errors
from kilonova.embedded.network import ports as port_rules
from kilonova.embedded.network.attributes import (
    Attribute,
    address,
    boolean,
    cidr,
    many,
    maybe,
    record,
    uuid,
)
from kilonova.embedded.network.networks import NETWORK, SUBNET
from kilonova.embedded.network.nouns import Caller, Noun, fetch, only_owners
from kilonova.embedded.network.ports import PORT, ROUTER_GATEWAY, ROUTER_INTERFACE
from kilonova.embedded.network.tables import floating_ips, ports, routers, subnets
from kilonova.embedded.store import Row, transact

# -- gateway -----------------------------------------------------------------------------------------------------


def _create(c: Connection, caller: Caller, noun: Noun, row: Row) -> None:
    wanted = row["external_gateway_info"]
    row |= _connect(c, caller, row, wanted) if wanted else {"external_gateway_info": None, "gateway_port_id": None}
    noun.insert(c, row)


def _connect(c: Connection, caller: Caller, row: Row, wanted: Row) -> Row:
    network = fetch(c, caller, NETWORK, wanted["network_id"])
    if not network["external"]:
        raise errors.HTTPBadRequest(f"Network {network['id']} is not an external network.")
    fixed = wanted.get("external_fixed_ips") or None
    port = port_rules.internal(network, ROUTER_GATEWAY, row["id"], "", fixed_ips=fixed)
    port_rules.add(c, network, port)
    info = {"network_id": network["id"], "enable_snat": wanted.get("enable_snat", True),
            "external_fixed_ips": port["fixed_ips"]}  # fmt: skip
    return {"external_gateway_info": info, "gateway_port_id": port["id"]}


def _disconnect(c: Connection, row: Row) -> None:
    if row["gateway_port_id"] is None:
        return
    if floating_ips.find(c, {"router_id": row["id"]}):
        raise errors.RouterExternalGatewayInUseByFloatingIp(id=row["id"])
    routers.update(c, row["id"], {"gateway_port_id": None, "external_gateway_info": None})
    ports.delete(c, row["gateway_port_id"])


def _change(c: Connection, caller: Caller, row: Row, changes: Row) -> None:
    if changes.get("routes"):
        _check_routes(c, row, changes["routes"])
    if "external_gateway_info" not in changes:
        return
    wanted, now = changes["external_gateway_info"], row["external_gateway_info"]
    if wanted and now and wanted["network_id"] == now["network_id"] and not wanted.get("external_fixed_ips"):
        changes["external_gateway_info"] = now | {"enable_snat": wanted.get("enable_snat", now["enable_snat"])}
        return
    _disconnect(c, row)
    changes |= _connect(c, caller, row, wanted) if wanted else {"external_gateway_info": None, "gateway_port_id": None}


def _check_routes(c: Connection, row: Row, routes: list[dict[str, str]]) -> None:
    around = [fixed["subnet_id"] for port in ports.find(c, {"device_id": row["id"]}) for fixed in port["fixed_ips"]]
    spans = [ipaddress.ip_network(subnet["cidr"]) for subnet in subnets.find(c, {"id": around})] if around else []
    for route in routes:
        if not any(ipaddress.ip_address(route["nexthop"]) in span for span in spans):
            raise errors.HTTPBadRequest(f"The next hop {route['nexthop']} is not on a subnet of the router.")


def _delete(c: Connection, caller: Caller, row: Row, noun: Noun) -> None:
    if interfaces(c, row["id"]):
        raise errors.RouterInUse(id=row["id"])
    _disconnect(c, row)
    routers.delete(c, row["id"])


def interfaces(c: Connection, router_id: str) -> list[Row]:
    """The ports by which subnets are connected to the router."""
    return ports.find(c, {"device_id": router_id, "device_owner": ROUTER_INTERFACE})


# -- interfaces --------------------------------------------------------------------------------------------------


def add_interface(caller: Caller, router_id: str, body: Any) -> Row:
    """Connect a subnet, or a port, to the router; answers the interface.

    Raises NotFound, HTTPBadRequest (none or both named, overlap, no gateway), PortInUse, IpAddressInUse.
    """
    wish = _wish(body)
    if len(wish) != 1:
        raise errors.HTTPBadRequest("Name either subnet_id or port_id.")

    def work(c: Connection) -> Row:
        router = fetch(c, caller, ROUTER, router_id, lock=True)
        only_owners(caller, ROUTER, router)
        port = connect_subnet(c, caller, router, wish["subnet_id"]) if "subnet_id" in wish else _by_port(
            c, caller, router, wish["port_id"])  # fmt: skip
        return _interface(router, port)

    return transact(caller.world.database, work)


def _wish(body: Any) -> dict[str, str]:
    try:
        return record({"subnet_id": uuid, "port_id": uuid})(body)  # type: ignore[no-any-return]
    except ValueError as error:
        raise errors.InvalidInput(reason=str(error)) from error


def connect_subnet(c: Connection, caller: Caller, router: Row, subnet_id: str) -> Row:
    """A new interface of the router with the subnet's gateway address; answers its port."""
    subnet = fetch(c, caller, SUBNET, subnet_id)
    if subnet["gateway_ip"] is None:
        raise errors.HTTPBadRequest(f"Subnet {subnet_id} has no gateway address for the router.")
    _check_overlap(c, router, [subnet])
    network = fetch(c, caller, NETWORK, subnet["network_id"])
    fixed = [{"subnet_id": subnet["id"], "ip_address": subnet["gateway_ip"]}]
    port = port_rules.internal(network, ROUTER_INTERFACE, router["id"], router["project_id"], fixed_ips=fixed)
    port_rules.add(c, network, port)
    return port


def _by_port(c: Connection, caller: Caller, router: Row, port_id: str) -> Row:
    port = fetch(c, caller, PORT, port_id, lock=True)
    if port["device_id"]:
        raise errors.PortInUse(id=port_id, device=port["device_id"])
    if not port["fixed_ips"]:
        raise errors.HTTPBadRequest(f"Port {port_id} has no address.")
    _check_overlap(c, router, subnets.find(c, {"id": [fixed["subnet_id"] for fixed in port["fixed_ips"]]}))
    ports.update(c, port_id, {"device_id": router["id"], "device_owner": ROUTER_INTERFACE, "status": "ACTIVE"})
    return port


def _check_overlap(c: Connection, router: Row, wanted: list[Row]) -> None:
    taken = {fixed["subnet_id"] for port in interfaces(c, router["id"]) for fixed in port["fixed_ips"]}
    around = subnets.find(c, {"id": list(taken)}) if taken else []
    for subnet in wanted:
        if subnet["id"] in taken:
            raise errors.HTTPBadRequest(f"Router {router['id']} has an interface on subnet {subnet['id']} already.")
        span = ipaddress.ip_network(subnet["cidr"])
        for other in around:
            if other["ip_version"] == span.version and span.overlaps(ipaddress.ip_network(other["cidr"])):
                raise errors.HTTPBadRequest(f"Cidr {span} of subnet {subnet['id']} overlaps with cidr {other['cidr']} "
                                            f"of subnet {other['id']}.")  # fmt: skip


def remove_interface(caller: Caller, router_id: str, body: Any) -> Row:
    """Disconnect a subnet or a port; answers the interface there was.

    Raises NotFound, RouterInterfaceNotFound, RouterInterfaceInUseByFloatingIP, HTTPBadRequest.
    """
    wish = _wish(body)
    if not wish:
        raise errors.HTTPBadRequest("Name subnet_id or port_id.")

    def work(c: Connection) -> Row:
        router = fetch(c, caller, ROUTER, router_id, lock=True)
        only_owners(caller, ROUTER, router)
        port = next((p for p in interfaces(c, router_id) if _matches(p, wish)), None)
        if port is None:
            raise errors.RouterInterfaceNotFound(id=router_id, what=wish.get("port_id") or wish["subnet_id"])
        _check_floating(c, router, port)
        ports.delete(c, port["id"])
        return _interface(router, port)

    return transact(caller.world.database, work)


def _matches(port: Row, wish: dict[str, str]) -> bool:
    on = [fixed["subnet_id"] for fixed in port["fixed_ips"]]
    return wish.get("port_id", port["id"]) == port["id"] and ("subnet_id" not in wish or wish["subnet_id"] in on)


def _check_floating(c: Connection, router: Row, port: Row) -> None:
    leaving = {fixed["subnet_id"] for fixed in port["fixed_ips"]}
    spans = [ipaddress.ip_network(row["cidr"]) for row in subnets.find(c, {"id": list(leaving)})]
    for floating in floating_ips.find(c, {"router_id": router["id"]}):
        if any(ipaddress.ip_address(floating["fixed_ip_address"]) in span for span in spans):
            raise errors.RouterInterfaceInUseByFloatingIP(id=router["id"], subnet=", ".join(sorted(leaving)))


def _interface(router: Row, port: Row) -> Row:
    on = [fixed["subnet_id"] for fixed in port["fixed_ips"]]
    return {"id": router["id"], "project_id": router["project_id"], "tenant_id": router["project_id"],
            "port_id": port["id"], "network_id": port["network_id"], "subnet_id": on[0], "subnet_ids": on}  # fmt: skip


_FIXED = record({"subnet_id": uuid, "ip_address": address})
_GATEWAY = record({"network_id": uuid, "enable_snat": boolean, "external_fixed_ips": many(_FIXED, 20)}, ("network_id",))


def _gateway(value: Any) -> Row | None:
    return _GATEWAY(value) if value else None


ROUTER = Noun(
    "router", "routers", routers, errors.RouterNotFound,
    own=(
        Attribute("admin_state_up", boolean, True),
        Attribute("status", default="ACTIVE", set="never"),
        Attribute("external_gateway_info", _gateway, None),
        Attribute("routes", many(record({"destination": cidr, "nexthop": address}, ("destination", "nexthop")), 30), (),
                  set="update"),
        Attribute("flavor_id", maybe(uuid), set="never", column=""),
    ),
    create=_create, update=_change, delete=_delete,
)  # fmt: skip
