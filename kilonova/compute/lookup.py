"""Finding a server: the mapping says which cell, the cell has the row; before that there is a build request."""

from __future__ import annotations

from dataclasses import dataclass

from kilonova.compute.world import World
from kilonova.core import ids
from kilonova.core.context import Context
from kilonova.core.errors import Conflict, NotFound
from kilonova.core.server import BlockDevice, Server, ServerExtra
from kilonova.db.queries import requests, servers


class ServerNotFound(NotFound):
    """There is no such server, or it is not the caller's to see."""

    code, message = "server_not_found", "Instance {server} could not be found."


class ServerHasNoCell(Conflict):
    """The server waits for the scheduler; what is asked needs it to be on a host."""

    code, message = "server_has_no_cell", "Instance {server} is not ready: it is still being scheduled."


@dataclass(frozen=True, slots=True)
class Found:
    """A server and where it is. cell: None while only the build request exists; then `request` is that."""

    server: Server
    cell: str | None
    request: requests.BuildRequest | None = None

    @property
    def uuid(self) -> str:
        """The server's uuid."""
        return self.server.uuid

    @property
    def project_id(self) -> str:
        """The project that policy rules look at."""
        return self.server.project_id

    @property
    def user_id(self) -> str:
        """The user that policy rules look at."""
        return self.server.user_id


def find(world: World, ctx: Context, uuid: str, *, deleted: bool = False) -> Found:
    """The server, for its project or an administrator; ServerNotFound for everybody else.

    `deleted` finds deleted ones too. Another project's server is not found, so that ids cannot be probed.
    """
    found = _find(world, uuid, deleted=deleted) if ids.is_uuid_like(uuid) else None
    if found is None or not (ctx.is_admin or found.server.project_id == ctx.project_id):
        raise ServerNotFound(server=uuid)
    return found


def _find(world: World, uuid: str, *, deleted: bool) -> Found | None:
    for _ in range(2):  # a server may get its cell between our two reads
        mapping = requests.mapping(world.cells.api, uuid)
        if mapping is None:
            return None
        if mapping.cell_uuid is not None:
            server = servers.get(world.cells.database(mapping.cell_uuid), mapping.uuid, deleted=deleted)
            return None if server is None else Found(server, mapping.cell_uuid)
        request = requests.get(world.cells.api, uuid)
        if request is not None:
            return Found(request.server, None, request)
    return None


def in_cell(found: Found) -> tuple[Server, str]:
    """(server, cell) of a server that has one; ServerHasNoCell otherwise."""
    if found.cell is None:
        raise ServerHasNoCell(server=found.server.uuid)
    return found.server, found.cell


def extra_of(world: World, found: Found) -> ServerExtra:
    """The extra row."""
    if found.request is not None:
        return found.request.extra
    assert found.cell is not None
    rows = servers.extras(world.cells.database(found.cell), [found.server.uuid])
    return rows.get(found.server.uuid, ServerExtra())


def devices_of(world: World, found: Found) -> list[BlockDevice]:
    """The block devices."""
    if found.request is not None:
        return found.request.devices
    assert found.cell is not None
    from kilonova.db.queries import block_devices

    return block_devices.of(world.cells.database(found.cell), found.server.uuid)
