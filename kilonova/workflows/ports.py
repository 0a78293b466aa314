"""A server's ports: made or taken over, found again after a crash, and given back.

A port of ours is found again by device_id, network and order; a user's port by its id. What the rest of the program
knows of a port is its vif: a plain map kept in the server's row, {id, network, mac, fixed_ips, floating_ips,
vnic_type, vif_type, tag, ours, active}.
"""

from __future__ import annotations

from typing import Any

from kilonova.clients.network import PortNotFound
from kilonova.compute.world import World
from kilonova.core.server import Server

Vif = dict[str, Any]


def ensure(
    world: World, server: Server, interfaces: list[dict[str, Any]], groups: list[str], *, look: bool,
    made: list[str] | None = None,
) -> list[Vif]:  # fmt: skip
    """The ports of a server on its host, bound. `look`: an earlier try may have made some of them. The ids of those
    that this call makes are added to `made`.
    """
    if not interfaces:
        return []
    mine = world.network.list_ports(device_id=server.uuid) if look else []
    unused = [port for port in mine if not any(port["id"] == entry["port"] for entry in interfaces)]
    ports: list[dict[str, Any] | None] = []
    for entry in interfaces:
        match = None if entry["port"] else _take(unused, entry["network"]["id"])
        port = match["id"] if match else entry["port"]
        ports.append(_bind(world, server, port, entry) if port else None)
    missing = [index for index, port in enumerate(ports) if port is None]
    new = _create(world, [_body(server, interfaces[index], groups) for index in missing])
    if made is not None:
        made += [port["id"] for port in new]
    for index, port in zip(missing, new, strict=True):
        ports[index] = port
    return [vif_of(port, entry) for port, entry in zip(ports, interfaces, strict=True) if port is not None]


def _create(world: World, bodies: list[dict[str, Any]]) -> list[dict[str, Any]]:
    if len(bodies) == 1:
        return [world.network.create_port(bodies[0])]
    return world.network.create_ports(bodies) if bodies else []


def _take(ports: list[dict[str, Any]], network: str) -> dict[str, Any] | None:
    for index, port in enumerate(ports):
        if port["network_id"] == network:
            return ports.pop(index)
    return None


def _bind(world: World, server: Server, port: str, entry: dict[str, Any]) -> dict[str, Any]:
    body: dict[str, Any] = {
        "device_id": server.uuid, "device_owner": _owner(server), "binding:host_id": server.host,
    }  # fmt: skip
    if entry.get("allocation"):
        profile = world.network.show_port(port).get("binding:profile") or {}
        body["binding:profile"] = {**profile, "allocation": entry["allocation"]}
    return world.network.update_port(port, body)


def with_allocations(interfaces: list[dict[str, Any]], mappings: dict[str, list[str]]) -> list[dict[str, Any]]:
    """The interfaces; of each port with resources, which provider gives them: its uuid, or by group of the port.

    mappings: of the claimed allocation request, a group's suffix to providers.
    """
    return [entry | _allocation(entry, mappings) if entry.get("resource_request") else entry for entry in interfaces]


def _allocation(entry: dict[str, Any], mappings: dict[str, list[str]]) -> dict[str, Any]:
    groups = entry["resource_request"].get("request_groups")
    if groups is None:
        found = mappings.get(entry["port"])
        return {"allocation": found[0]} if found else {}
    given = {group["id"]: mappings[group["id"]][0] for group in groups if mappings.get(group["id"])}
    return {"allocation": given} if given else {}


def _owner(server: Server) -> str:
    return f"compute:{server.availability_zone or 'None'}"


def _body(server: Server, entry: dict[str, Any], groups: list[str]) -> dict[str, Any]:
    body: dict[str, Any] = {
        "network_id": entry["network"]["id"],
        "device_id": server.uuid,
        "device_owner": _owner(server),
        "binding:host_id": server.host,
        "tenant_id": server.project_id,
        "admin_state_up": True,
    }
    if entry.get("fixed_ip"):
        body["fixed_ips"] = [{"ip_address": entry["fixed_ip"]}]
    if groups:
        body["security_groups"] = groups
    return body


def vif_of(port: dict[str, Any], entry: dict[str, Any]) -> Vif:
    """The vif of a port as the network service shows it."""
    return {
        "id": port["id"],
        "network": entry["network"],
        "mac": port["mac_address"],
        "fixed_ips": [
            {"address": fixed["ip_address"], "subnet_id": fixed["subnet_id"],
             "version": 6 if ":" in fixed["ip_address"] else 4}
            for fixed in port.get("fixed_ips") or []
        ],
        "floating_ips": [],
        "vnic_type": port.get("binding:vnic_type", "normal"),
        "vif_type": port.get("binding:vif_type"),
        "tag": entry.get("tag"),
        "ours": not entry["port"],
        "active": port.get("status") == "ACTIVE",
    }  # fmt: skip


def release(world: World, server: str, kept: list[str]) -> None:
    """Remove a server's ports; those in `kept` are a user's own and are only unbound. Done already is done."""
    for port in world.network.list_ports(device_id=server):
        if port["id"] in kept:
            _unbind(world, port)
        else:
            world.network.delete_port(port["id"])


def drop_surplus(world: World, server: str, made: list[str], wanted: int) -> None:
    """Remove those of the ports in `made` that are beyond the number that the server wants (0: it is gone)."""
    there = [port["id"] for port in world.network.list_ports(device_id=server)] if made else []
    ours = [port for port in made if port in there]
    for port in ours[: max(0, len(there) - wanted)]:
        world.network.delete_port(port)


def _unbind(world: World, port: dict[str, Any]) -> None:
    body: dict[str, Any] = {"device_id": "", "device_owner": "", "binding:host_id": None}
    profile = port.get("binding:profile") or {}
    if "allocation" in profile:
        body["binding:profile"] = {key: value for key, value in profile.items() if key != "allocation"}
    try:
        world.network.update_port(port["id"], body)
    except PortNotFound:
        return
