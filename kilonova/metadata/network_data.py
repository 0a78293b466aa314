"""`network_data.json`: links, networks and services, from a server's vifs and their subnets.

The format is that of OpenStack's published schema of the file. Pure: what it needs is handed in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from ipaddress import ip_network
from typing import Any

Doc = dict[str, Any]

_LINKS = frozenset(("bridge", "dvs", "hw_veb", "hyperv", "ovs", "tap", "vhostuser", "vif"))


def network_data(vifs: Sequence[Doc], subnets: Mapping[str, Doc]) -> Doc:
    """The document. A subnet that is not there any more is left out."""
    networks: list[Doc] = []
    for vif in vifs:
        dynamic: set[str] = set()
        for fixed in vif["fixed_ips"]:
            subnet = subnets.get(fixed["subnet_id"])
            if subnet is None or subnet["id"] in dynamic:
                continue
            mode = _mode(subnet)
            if mode:
                dynamic.add(subnet["id"])  # the guest asks, and is told all its addresses
            entry = {"id": f"network{len(networks)}", "link": _link_id(vif), "network_id": vif["network"]["id"]}
            kind = f"ipv{subnet['ip_version']}"
            networks.append(entry | ({"type": f"{kind}_{mode}"} if mode else {"type": kind, **_fixed(fixed, subnet)}))
    return {"links": [_link(vif) for vif in vifs], "networks": networks, "services": _services(subnets.values())}


def _link_id(vif: Doc) -> str:
    return f"tap{vif['id'][:11]}"


def _link(vif: Doc) -> Doc:
    kind = vif.get("vif_type")
    return {
        "id": _link_id(vif), "vif_id": vif["id"], "type": kind if kind in _LINKS else "phy",
        "mtu": vif["network"].get("mtu"), "ethernet_mac_address": vif["mac"],
    }  # fmt: skip


def _mode(subnet: Doc) -> str:
    """How addresses of a subnet come to the guest; empty when it must be told them here."""
    return str(subnet.get("ipv6_address_mode") or ("dhcp" if subnet.get("enable_dhcp") else ""))


def _fixed(fixed: Doc, subnet: Doc) -> Doc:
    anywhere = "0.0.0.0/0" if subnet["ip_version"] == 4 else "::/0"
    routes = [_route(anywhere, subnet["gateway_ip"])] if subnet.get("gateway_ip") else []
    routes += [_route(route["destination"], route["nexthop"]) for route in subnet.get("host_routes") or ()]
    return {
        "ip_address": fixed["address"], "netmask": str(ip_network(subnet["cidr"]).netmask), "routes": routes,
        "services": _services([subnet]),
    }  # fmt: skip


def _route(destination: str, gateway: str) -> Doc:
    network = ip_network(destination, strict=False)
    return {"network": str(network.network_address), "netmask": str(network.netmask), "gateway": gateway}


def _services(subnets: Any) -> list[Doc]:
    names = dict.fromkeys(address for subnet in subnets for address in subnet.get("dns_nameservers") or ())
    return [{"type": "dns", "address": address} for address in names]
