"""Changing what a server is called and shown as; nothing of this touches its host."""

from __future__ import annotations

from typing import Any

import msgspec

from kilonova.compute.lookup import Found, ServerNotFound, find
from kilonova.compute.world import World
from kilonova.core.context import Context
from kilonova.core.errors import Conflict
from kilonova.db.queries import requests, servers

_COLUMNS = {
    "name": "display_name",
    "description": "display_description",
    "hostname": "hostname",
    "accessIPv4": "access_ip_v4",
    "accessIPv6": "access_ip_v6",
}


class ZonePinned(Conflict):
    """A server is pinned only to the zone it is in, and only when it is pinned to none (2.104)."""

    code, message = "zone_pinned", "Server {server} cannot be pinned to {zone}: {why}."


class ServerStillBuilding(Conflict):
    """The server moved to its cell while we looked."""

    code, message = "server_changed", "Server {server} changed while it was updated; try again."


def update(world: World, ctx: Context, found: Found, changes: dict[str, Any]) -> Found:
    """Apply the members of a PUT; answers the server as it is afterwards."""
    if "pinned_availability_zone" in changes:
        _pin(world, found, changes["pinned_availability_zone"])
    values: dict[str, Any] = {column: changes[key] for key, column in _COLUMNS.items() if key in changes}
    if "display_name" in values:
        values["display_name"] = values["display_name"].strip()
    if "OS-DCF:diskConfig" in changes:
        values["auto_disk_config"] = changes["OS-DCF:diskConfig"] == "AUTO"
    if values and not _store(world, found, values):
        raise ServerNotFound(server=found.server.uuid)
    return find(world, ctx, found.server.uuid)


def _store(world: World, found: Found, values: dict[str, Any]) -> bool:
    uuid = found.server.uuid
    if found.request is not None:
        changed = msgspec.structs.replace(found.request, server=msgspec.structs.replace(found.server, **values))
        with world.cells.api.write() as connection:
            if requests.replace(connection, changed):
                return True
    mapping = requests.mapping(world.cells.api, uuid)
    if mapping is None or mapping.cell_uuid is None:
        return False
    with world.cells.database(mapping.cell_uuid).write() as connection:
        return servers.change(connection, uuid, values)


def _pin(world: World, found: Found, zone: str | None) -> None:
    uuid = found.server.uuid
    spec = requests.specs(world.cells.api, [uuid]).get(uuid)
    if spec is None:
        return
    if zone is not None and zone != spec.availability_zone:
        if spec.availability_zone is not None:
            raise ZonePinned(server=uuid, zone=zone, why=f"it is pinned to {spec.availability_zone}")
        if zone != found.server.availability_zone:
            raise ZonePinned(server=uuid, zone=zone, why=f"it is in {found.server.availability_zone}")
    with world.cells.api.write() as connection:
        requests.set_spec(connection, uuid, msgspec.structs.replace(spec, availability_zone=zone))
