"""The network information kept in a server's row, brought up to date when the network service says it has changed.

Not by the clock: the events `network-changed` (addresses, floating IPs) and `network-vif-deleted` (a port is gone)
name the server. All its ports and their floating IPs are read anew and written over what the row says of the
interfaces it knows; a port that is gone leaves the row. Events come late, twice and out of order: each reads the
present state, so the last one read wins, and the row's version makes sure that nothing newer is written over.
Interfaces are added by those who make them, never here: a build or an attachment under way writes its own.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from kilonova.bus.calls import Event
from kilonova.compute.world import World
from kilonova.core.errors import KilonovaError
from kilonova.core.server import Server
from kilonova.db.queries import servers

LOG = logging.getLogger(__name__)

EVENTS = frozenset(("network-changed", "network-vif-deleted"))
_TRIES = 5  # somebody else changed the row meanwhile

Vif = dict[str, Any]


class NetworkCache:
    """A subscriber of the conductor's events."""

    def __init__(self, world: World) -> None:
        self._world = world

    def told(self, events: Sequence[Event]) -> None:
        """Refresh every server that one of the events is about. What fails is logged: the next event repairs it."""
        for database, uuid in dict.fromkeys((one.database, one.server) for one in events if one.name in EVENTS):
            try:
                refresh(self._world, database, uuid)
            except KilonovaError as error:
                LOG.warning("The network information of server %s could not be refreshed: %s", uuid, error)


def refresh(world: World, cell: str, uuid: str) -> bool:
    """Read a server's ports and floating IPs, and write what has changed; whether anything had."""
    database = world.cells.database(cell)
    for _ in range(_TRIES):
        server = servers.get(database, uuid)
        if server is None or not server.network_info:
            return False
        vifs = _present(world, server)
        if vifs == server.network_info:
            return False
        with database.write() as connection:
            if servers.change(connection, uuid, {"network_info": vifs}, version=server.version):
                return True
    return False


def _present(world: World, server: Server) -> list[Vif]:
    ports = {port["id"]: port for port in world.network.list_ports(device_id=server.uuid)}
    floating: dict[str, list[dict[str, Any]]] = {}
    for row in world.network.list_floatingips(port_ids=ports):
        address = row["floating_ip_address"]
        entry = {"address": address, "version": _version(address), "fixed_address": row["fixed_ip_address"]}
        floating.setdefault(row["port_id"], []).append(entry)
    return [
        vif | {
            "mac": port["mac_address"], "fixed_ips": _fixed(port), "active": port.get("status") == "ACTIVE",
            "floating_ips": sorted(floating.get(port["id"], ()), key=lambda entry: str(entry["address"])),
        }
        for vif in server.network_info if (port := ports.get(vif["id"])) is not None
    ]  # fmt: skip


def _fixed(port: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"address": fixed["ip_address"], "subnet_id": fixed["subnet_id"], "version": _version(fixed["ip_address"])}
        for fixed in port.get("fixed_ips") or ()
    ]


def _version(address: str) -> int:
    return 6 if ":" in address else 4
