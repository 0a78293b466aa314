"""Networks of a server to be: what was asked for becomes a list of interfaces, each a network or a port.

Checked here, made later by `workflows.build`. An interface is a plain map, because it travels in the journal:
{network: {id, label, mtu}, port: id|None, fixed_ip, tag}; and of a port that needs more than any host has: vnic_type,
resource_request (Neutron's own document).
"""

from __future__ import annotations

from ipaddress import ip_address, ip_network
from typing import Any

from kilonova.clients.network import NetworkNotFound, PortNotFound, SecurityGroupNotFound
from kilonova.compute.world import World
from kilonova.core import ids
from kilonova.core.context import Context
from kilonova.core.errors import Conflict, Forbidden, Invalid, OverQuota

EXTERNAL_RULE = "network:attach_external_network"

QOS_EXTENSIONS = frozenset(("port-resource-request", "port-resource-request-groups"))

Interface = dict[str, Any]


class NetworkUnusable(Invalid):
    """A network, port or address that was asked for cannot be used."""

    code, message = "network_unusable", "{what} {id} {why}."


class NetworkAmbiguous(Conflict):
    """No network was named and there are several."""

    code = "network_ambiguous"
    message = "Multiple possible networks found, use a Network ID to be more specific."


class PortTaken(Conflict):
    """The port belongs to a server already."""

    code, message = "port_taken", "Port {id} is in use by {device}."


class ExternalNetwork(Forbidden):
    """An external network, and the caller may not attach to one."""

    code, message = "external_network", "It is not allowed to create an interface on external network {id}."


class PortsOverQuota(OverQuota):
    """The network service's port quota is in the way."""

    code = "ports_over_quota"
    message = (
        "Quota exceeded for ports: Requested {requested}, but already used {used} of {limit} ports. "
        "An administrator raises it with: openstack quota set --ports <number> {project}"
    )


class SecurityGroupUnusable(Invalid):
    """A security group that was asked for is not there."""

    code, message = "security_group_unusable", "Security group {name} not found for project {project}."


class SecurityGroupAmbiguous(Conflict):
    """Several groups have the name."""

    code, message = "security_group_ambiguous", "Multiple security groups found matching '{name}'. Use an ID."


def interfaces(
    world: World, ctx: Context, asked: list[dict[str, Any]] | str | None, *, may_attach_external: bool
) -> list[Interface]:
    """The interfaces of every server of a request.

    asked: the request's list, `"none"`, `"auto"`, or None for the automatic choice: the one network of the project,
    no interface when it has none, NetworkAmbiguous when it has several.
    """
    if asked == "none":
        return []
    network = world.network.as_user(ctx)
    if asked == "auto":
        return [_from_network(_auto(world, ctx), {})]
    if not asked:
        usable = network.list_networks(ctx.project_id)
        usable = [found for found in usable if not found.get("router:external")]
        if len(usable) > 1:
            raise NetworkAmbiguous
        return [_from_network(_checked(found, may_attach_external), {}) for found in usable]
    return _named(world, ctx, list(asked), may_attach_external)  # type: ignore[arg-type]


def _auto(world: World, ctx: Context) -> dict[str, Any]:
    usable = [net for net in world.network.as_user(ctx).list_networks(ctx.project_id) if not net.get("router:external")]
    if len(usable) > 1:
        raise NetworkAmbiguous
    if usable:
        return _checked(usable[0], False)
    return world.network.show_network(world.network.auto_allocate(ctx.project_id))


def _named(world: World, ctx: Context, asked: list[dict[str, Any]], may_attach_external: bool) -> list[Interface]:
    network = world.network.as_user(ctx)
    wanted = [entry["uuid"] for entry in asked if not entry.get("port") and entry.get("uuid")]
    found = {net["id"]: net for net in (network.list_networks(ids=wanted) if wanted else [])}
    chosen: list[Interface] = []
    seen_ports: set[str] = set()
    for entry in asked:
        port_id, uuid = entry.get("port"), entry.get("uuid")
        if port_id:
            if port_id in seen_ports:
                raise NetworkUnusable(what="Port", id=port_id, why="is named twice")
            seen_ports.add(port_id)
            chosen.append(_from_port(world, ctx, port_id, entry))
            continue
        if not uuid or not ids.is_uuid_like(uuid):
            raise NetworkUnusable(what="Network", id=uuid, why="is neither a network's nor a port's UUID")
        if uuid not in found:
            raise NetworkUnusable(what="Network", id=uuid, why="could not be found")
        chosen.append(_from_network(_checked(found[uuid], may_attach_external), entry))
        if entry.get("fixed_ip"):
            _check_address(world, ctx, uuid, entry["fixed_ip"])
    return chosen


def _check_address(world: World, ctx: Context, net: str, address: str) -> None:
    """An address must be of a subnet and free. Whoever takes it in the meantime has it: then the build fails."""
    network = world.network.as_user(ctx)
    wanted = ip_address(address)
    if not any(wanted in ip_network(subnet["cidr"]) for subnet in network.list_subnets(network_id=net)):
        raise NetworkUnusable(what="Fixed IP", id=address, why=f"is in no subnet of network {net}")
    if network.list_ports(network_id=net, fixed_ips=f"ip_address={address}"):
        raise NetworkUnusable(what="Fixed IP", id=address, why="is in use")


def _checked(net: dict[str, Any], may_attach_external: bool) -> dict[str, Any]:
    if not net.get("subnets"):
        raise NetworkUnusable(what="Network", id=net["id"], why="requires a subnet in order to boot servers on")
    if net.get("router:external") and not net.get("shared") and not may_attach_external:
        raise ExternalNetwork(id=net["id"])
    return net


def _from_network(net: dict[str, Any], entry: dict[str, Any]) -> Interface:
    return {
        "network": {"id": net["id"], "label": net.get("name") or "", "mtu": net.get("mtu")},
        "port": None,
        "fixed_ip": entry.get("fixed_ip"),
        "tag": entry.get("tag"),
    }


def _from_port(world: World, ctx: Context, port_id: str, entry: dict[str, Any]) -> Interface:
    if entry.get("fixed_ip"):
        raise NetworkUnusable(what="Port", id=port_id, why="has addresses already: no fixed IP can be given with it")
    network = world.network.as_user(ctx)
    try:
        port = network.show_port(port_id)
        net = network.show_network(port["network_id"])
    except PortNotFound:
        raise NetworkUnusable(what="Port", id=port_id, why="could not be found") from None
    except NetworkNotFound:
        raise NetworkUnusable(what="Port", id=port_id, why="is on a network that could not be found") from None
    if port.get("device_id"):
        raise PortTaken(id=port_id, device=port["device_id"])
    if not port.get("fixed_ips") and port.get("ip_allocation") != "deferred":
        raise NetworkUnusable(what="Port", id=port_id, why="requires a fixed IP in order to be used")
    return _from_network(net, {"tag": entry.get("tag")}) | {"port": port_id} | _needs(world, port)


def _needs(world: World, port: dict[str, Any]) -> dict[str, Any]:
    """What the port needs of a host beside its network. Resources are shown to services alone."""
    kind = port.get("binding:vnic_type", "normal")
    needs = {} if kind == "normal" else {"vnic_type": kind}
    if QOS_EXTENSIONS & world.network.extensions():
        asked = world.network.show_port(port["id"]).get("resource_request")
        needs |= {"resource_request": asked} if asked else {}
    return needs


def check_quota(world: World, ctx: Context, wanted: list[Interface], least: int, most: int) -> int:
    """How many servers with these interfaces the port quota lets be made; PortsOverQuota when not even `least`."""
    new = sum(1 for interface in wanted if not interface["port"])
    if not new:
        return most
    limit, used = world.network.as_user(ctx).quota_usage(ctx.project_id, "port")
    if limit < 0:
        return most
    fitting = max(0, limit - used) // new
    if fitting < least:
        raise PortsOverQuota(requested=new * least, used=used, limit=limit, project=ctx.project_id)
    return min(most, fitting)


def security_groups(world: World, ctx: Context, names: list[str]) -> list[str]:
    """The ids of the groups of these names or ids, each once; none are asked for when only `default` is."""
    if not names or set(names) == {"default"}:
        return []
    try:
        known = world.network.as_user(ctx).list_security_groups(ctx.project_id)
    except SecurityGroupNotFound:
        known = []
    chosen: dict[str, None] = {}
    for name in names:
        matching = [group["id"] for group in known if name in (group["id"], group["name"])]
        if not matching:
            raise SecurityGroupUnusable(name=name, project=ctx.project_id)
        if len(matching) > 1:
            raise SecurityGroupAmbiguous(name=name)
        chosen[matching[0]] = None
    return list(chosen)
