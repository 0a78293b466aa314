"""Ports: addresses, groups, binding, and what compute is told about them."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from kilonova.core import ids
from kilonova.embedded.network import addresses, errors, groups
from kilonova.embedded.network.attributes import (
    REQUIRED,
    Attribute,
    address,
    boolean,
    cidr,
    free_map,
    mac,
    many,
    maybe,
    one_of,
    record,
    text,
    uuid,
)
from kilonova.embedded.network.networks import NETWORK
from kilonova.embedded.network.nouns import Caller, Event, Noun, fetch, stamped
from kilonova.embedded.network.tables import ALLOCATIONS, NETWORKS, PORT_GROUPS, PORTS, floating_ips, port_groups, ports
from kilonova.embedded.store import Row

NETWORK_OWNED = "network:"
ROUTER_INTERFACE, ROUTER_GATEWAY, FLOATING = "network:router_interface", "network:router_gateway", "network:floatingip"
_UNDELETABLE = (ROUTER_INTERFACE, ROUTER_GATEWAY, FLOATING)
_MAC_PREFIX = "fa:16:3e"
_VIF_DETAILS = {"port_filter": True, "connectivity": "l2", "bridge_name": "br-int", "datapath_type": "system",
                "ovs_hybrid_plug": False, "bound_drivers": {"0": "kilonova"}}  # fmt: skip
_VNIC_TYPES = ("normal", "direct", "macvtap", "baremetal", "direct-physical", "virtio-forwarder", "smart-nic", "vdpa",
               "accelerator-direct", "accelerator-direct-physical", "remote-managed")  # fmt: skip


# -- events ------------------------------------------------------------------------------------------------------


def event(name: str, port: Row, server: str | None = None) -> Event:
    """An external event about a port, for the server that has it."""
    return {"name": name, "server_uuid": server or port["device_id"], "tag": port["id"], "status": "completed"}


def serves_server(port: Row) -> bool:
    """Whether compute wants to hear of the port: it belongs to a server and not to the network service."""
    return bool(port["device_id"]) and not port["device_owner"].startswith(NETWORK_OWNED) and ids.is_uuid_like(
        port["device_id"])  # fmt: skip


def plugged(port: Row) -> bool:
    """Whether the port is wired: it has a device, a host, and is administratively up."""
    return bool(port["admin_state_up"] and port["device_id"] and port["binding_host_id"])


def _status(port: Row) -> str:
    if port["device_owner"].startswith(NETWORK_OWNED):
        return "ACTIVE" if port["admin_state_up"] and port["device_owner"] != FLOATING else "DOWN"
    return "ACTIVE" if plugged(port) else "DOWN"


def _tell(caller: Caller, old: Row, new: Row) -> None:
    """The events of a change from `old` to `new`."""
    was, now = serves_server(old) and plugged(old), serves_server(new) and plugged(new)
    place = ("device_id", "binding_host_id")
    moved = any(old[name] != new[name] for name in place)
    if now and (not was or moved):
        caller.events.append(event("network-vif-plugged", new))
    elif was and not now and not caller.service:
        caller.events.append(event("network-vif-unplugged", new, old["device_id"]))
    if now and was and old["fixed_ips"] != new["fixed_ips"]:
        caller.events.append(event("network-changed", new))


# -- create ------------------------------------------------------------------------------------------------------


def _create(c: Connection, caller: Caller, noun: Noun, row: Row) -> None:
    network = fetch(c, caller, NETWORK, row["network_id"])
    mine = caller.privileged or network["project_id"] == caller.project_id
    if not (mine or network["shared"]):
        raise errors.PolicyNotAuthorized(action=f"making a port on external network {network['id']}")
    _check_owner(caller, row)
    _settle_security(c, caller, network, row, mine)
    add(c, network, row)
    if serves_server(row) and plugged(row):
        caller.events.append(event("network-vif-plugged", row))


def add(c: Connection, network: Row, row: Row, versions: tuple[int, ...] = (4, 6)) -> None:
    """Store a complete port with its MAC, addresses and groups; what is None is chosen here, of these IP versions.

    Raises MacAddressInUse and what `addresses.choose` raises; Duplicate when another request was faster.
    """
    if row["mac_address"] is None:
        tail = ids.new_hex()[:6]
        row["mac_address"] = f"{_MAC_PREFIX}:{tail[:2]}:{tail[2:4]}:{tail[4:]}"
    elif ports.find(c, {"network_id": network["id"], "mac_address": row["mac_address"]}):
        raise errors.MacAddressInUse(mac=row["mac_address"], network=network["id"])
    row["fixed_ips"] = addresses.choose(c, network["id"], row["mac_address"], row["fixed_ips"], (), versions)
    row["status"] = _status(row)
    PORT.insert(c, row)
    addresses.keep(c, row["id"], row["fixed_ips"])
    _join_groups(c, row["id"], row["security_groups"])


def internal(network: Row, owner: str, device: str, project: str, **values: Any) -> Row:
    """The row of a port that the network service makes for itself."""
    rest = {"network_id": network["id"], "device_owner": owner, "device_id": device, "fixed_ips": None,
            "security_groups": [], "port_security_enabled": False, "name": "", "description": ""}  # fmt: skip
    return stamped(PORT.defaults | rest | values, project)


def _check_owner(caller: Caller, row: Row) -> None:
    if not caller.privileged and row.get("device_owner", "").startswith(NETWORK_OWNED):
        raise errors.PolicyNotAuthorized(action="setting a device_owner of the network service")


def _settle_security(c: Connection, caller: Caller, network: Row, row: Row, mine: bool) -> None:
    given = row["port_security_enabled"]
    if given is None:
        own = row["device_owner"].startswith(NETWORK_OWNED)
        row["port_security_enabled"] = network["port_security_enabled"] and not own
    elif given != network["port_security_enabled"] and not mine:
        raise errors.PolicyNotAuthorized(action="setting 'port_security_enabled' of a port on another's network")
    if row["port_security_enabled"]:
        row["security_groups"] = groups.of_port(c, caller, row["project_id"], row["security_groups"])
        return
    _check_insecure(row)
    row["security_groups"] = []


def _check_insecure(row: Row) -> None:
    if row["security_groups"]:
        raise errors.PortSecurityPortHasSecurityGroup
    if row["allowed_address_pairs"]:
        raise errors.AddressPairAndPortSecurityRequired


def _join_groups(c: Connection, port_id: str, wanted: list[str]) -> None:
    for group in wanted:
        port_groups.insert(c, {"port_id": port_id, "group_id": group})


# -- update and delete -------------------------------------------------------------------------------------------


def _change(c: Connection, caller: Caller, row: Row, changes: Row) -> None:
    _check_owner(caller, changes)
    for name in ("fixed_ips", "security_groups"):
        if name in changes and changes[name] is None:
            changes[name] = []
    if "mac_address" in changes and changes["mac_address"] != row["mac_address"]:
        if ports.find(c, {"network_id": row["network_id"], "mac_address": changes["mac_address"]}):
            raise errors.MacAddressInUse(mac=changes["mac_address"], network=row["network_id"])
        if plugged(row):
            raise errors.PortInUse(id=row["id"], device=row["device_id"])
    _change_security(c, caller, row, changes)
    if "fixed_ips" in changes:
        _change_addresses(c, row, changes)
    new = row | changes
    changes["status"] = new["status"] = _status(new)
    _tell(caller, row, new)


def _change_security(c: Connection, caller: Caller, row: Row, changes: Row) -> None:
    if changes.keys().isdisjoint(("port_security_enabled", "security_groups", "allowed_address_pairs")):
        return
    new = row | changes
    if not new["port_security_enabled"]:
        _check_insecure(new)
    if "security_groups" in changes:
        changes["security_groups"] = groups.of_port(c, caller, row["project_id"], changes["security_groups"])
        port_groups.delete(c, row["id"])
        _join_groups(c, row["id"], changes["security_groups"])


def _change_addresses(c: Connection, row: Row, changes: Row) -> None:
    old = row["fixed_ips"]
    new = addresses.choose(c, row["network_id"], row["mac_address"], changes["fixed_ips"], old)
    gone = [fixed for fixed in old if fixed not in new]
    held = {fixed["ip_address"] for fixed in gone}
    if any(fip["fixed_ip_address"] in held for fip in floating_ips.find(c, {"port_id": row["id"]})):
        raise errors.FloatingIPPortAlreadyAssociated(ip=", ".join(sorted(held)), port=row["id"])
    addresses.give_back(c, row["id"], gone)
    addresses.keep(c, row["id"], [fixed for fixed in new if fixed not in old])
    changes["fixed_ips"] = new


def _delete(c: Connection, caller: Caller, row: Row, noun: Noun) -> None:
    if row["device_owner"] in _UNDELETABLE:
        raise errors.ServicePortInUse(id=row["id"], owner=row["device_owner"])
    remove(c, row["id"])
    if serves_server(row) and row["binding_host_id"] and not caller.service:
        caller.events.append(event("network-vif-deleted", row))


def remove(c: Connection, port_id: str) -> None:
    """Delete a port with its addresses; a floating IP on it becomes free."""
    floating_ips.update(c, {"port_id": port_id}, _FREE)
    ports.delete(c, port_id)


_FREE: Row = {"port_id": None, "fixed_ip_address": None, "router_id": None, "status": "DOWN"}


# -- view and filters --------------------------------------------------------------------------------------------


def _derive(c: Connection, rows: list[Row]) -> None:
    for row in rows:
        bound = bool(row["binding_host_id"])
        row["binding:vif_type"] = "ovs" if bound else "unbound"
        row["binding:vif_details"] = _VIF_DETAILS if bound else {}


def _by_address(values: Any) -> sa.ColumnElement[bool]:
    """`fixed_ips=ip_address=10.0.0.3`, `fixed_ips=subnet_id=…`, `fixed_ips=ip_address_substr=10.0`."""
    tests: list[sa.ColumnElement[bool]] = []
    by: dict[str, list[str]] = {}
    for value in values:
        name, _, text_ = value.partition("=")
        by.setdefault(name, []).append(text_)
    for name, texts in by.items():
        if name in ("ip_address", "subnet_id"):
            tests.append(ALLOCATIONS.c[name].in_(texts))
        elif name == "ip_address_substr":
            tests.append(sa.or_(*(ALLOCATIONS.c.ip_address.contains(part, autoescape=True) for part in texts)))
        else:
            raise errors.HTTPBadRequest(f"fixed_ips cannot be filtered by {name!r}.")
    return PORTS.c.id.in_(sa.select(ALLOCATIONS.c.port_id).where(*tests))


def _by_group(values: Any) -> sa.ColumnElement[bool]:
    return PORTS.c.id.in_(sa.select(PORT_GROUPS.c.port_id).where(PORT_GROUPS.c.group_id.in_(list(values))))


_FIXED = record({"subnet_id": uuid, "ip_address": address})
_PAIR = record({"ip_address": cidr, "mac_address": mac}, ("ip_address",))
_DHCP_OPTION = record({"opt_name": text(64), "opt_value": maybe(text()), "ip_version": one_of(4, 6, "4", "6")},
                      ("opt_name",))  # fmt: skip
_ME = sa.bindparam("me", type_=sa.String)
_name = text()


def _host(value: Any) -> str:
    """A host's name; null unbinds, as compute services ask for it."""
    return "" if value is None else str(_name(value))


def _fixed(value: Any) -> list[dict[str, Any]] | None:
    """A list of {"subnet_id", "ip_address"}; an entry that names neither is refused."""
    if value is None:
        return None
    found: list[dict[str, Any]] = many(_FIXED, 50)(value)
    if not all(found):
        raise ValueError("an entry needs a subnet_id or an ip_address")
    return found


PORT = Noun(
    "port", "ports", ports, errors.PortNotFound,
    own=(
        Attribute("network_id", uuid, REQUIRED, set="create"),
        Attribute("admin_state_up", boolean, True),
        Attribute("status", set="never", default="DOWN"),
        Attribute("mac_address", mac, None),
        Attribute("fixed_ips", _fixed, None),
        Attribute("device_id", text(), ""),
        Attribute("device_owner", text(), ""),
        Attribute("security_groups", maybe(many(uuid, merge=True)), None),
        Attribute("port_security_enabled", boolean, None),
        Attribute("allowed_address_pairs", many(_PAIR), ()),
        Attribute("extra_dhcp_opts", many(_DHCP_OPTION), ()),
        Attribute("binding:vnic_type", one_of(*_VNIC_TYPES), "normal", column="binding_vnic_type"),
        Attribute("binding:host_id", _host, "", admin=True, hidden=True, column="binding_host_id"),
        Attribute("binding:profile", free_map, {}, admin=True, hidden=True, column="binding_profile"),
        Attribute("binding:vif_type", set="never", hidden=True, column=""),
        Attribute("binding:vif_details", set="never", hidden=True, column=""),
    ),
    shared=lambda: PORTS.c.network_id.in_(sa.select(NETWORKS.c.id).where(NETWORKS.c.project_id == _ME)),
    create=_create, update=_change, delete=_delete, derive=_derive,
    filters={"fixed_ips": _by_address, "security_groups": _by_group}, visible_is_mine=True,
)  # fmt: skip
