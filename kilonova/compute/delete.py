"""Deleting a server, in whatever phase it is: before it has a cell, while it is built, or later.

Before it has a cell the build request is the token: deleting it cancels the build. Afterwards the server is claimed
for deletion and a workflow (workflows.delete) takes it apart, stopping whatever else is being done to it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from kilonova.cells.cells import CELL0
from kilonova.compute import actions
from kilonova.compute.lookup import Found, ServerNotFound
from kilonova.compute.waking import wake
from kilonova.compute.world import World
from kilonova.core import clock, ids
from kilonova.core.context import Context
from kilonova.core.errors import KilonovaError
from kilonova.core.server import BlockDevice, Server
from kilonova.db.queries import actions as records
from kilonova.db.queries import block_devices, journal, requests, servers

LOG = logging.getLogger(__name__)

_ROW = actions.ROWS["delete"]
_TRIES = 5  # somebody else changed the server between our reading and our claim


def delete(world: World, ctx: Context, found: Found) -> None:
    """Delete a server. Silently nothing for one that is protected or is being deleted already.

    Raises ServerLocked, or ServerNotFound when it is gone meanwhile.
    """
    if found.server.disable_terminate:
        return
    cell = found.cell
    if cell is None:
        actions.check(_ROW, found.server, ctx)
        if _cancel(world, found.server):
            _delete_flagged(world, ctx, found.server, found.request.devices if found.request else ())
            return
        mapping = requests.mapping(world.cells.api, found.server.uuid)
        if mapping is None or mapping.cell_uuid is None:
            raise ServerNotFound(server=found.server.uuid)
        cell = mapping.cell_uuid
    _in_cell(world, ctx, found.server.uuid, cell)


def _cancel(world: World, server: Server) -> bool:
    """Take the build request away from the conductor. Whoever deletes it first wins; False: the conductor did."""
    with world.cells.api.write() as connection:
        if not requests.drop_request(connection, server.uuid):
            return False
        requests.forget(connection, server.uuid)
    return True


def _in_cell(world: World, ctx: Context, uuid: str, cell: str) -> None:
    database = world.cells.database(cell)
    workflow = ids.new_uuid()
    for _ in range(_TRIES):
        server = servers.get(database, uuid)
        if server is None:
            raise ServerNotFound(server=uuid)
        actions.check(_ROW, server, ctx)
        if server.task_state == _ROW.task_state:
            return
        if cell == CELL0:
            _bury(world, ctx, server)
            return
        if _start(world, ctx, server, cell, workflow):
            break
    else:
        raise actions.WrongState(action="delete", server=uuid, what="task_state", value="changing")
    with world.cells.api.write() as connection:
        requests.queue_delete(connection, uuid)
    wake(world, cell, workflow, ctx)


def _start(world: World, ctx: Context, server: Server, cell: str, workflow: str) -> bool:
    database, tables = world.database(cell)
    with database.write() as connection:
        if not actions.claim(connection, _ROW, server):
            return False
        records.start(connection, server.uuid, _ROW.action, ctx)
        row = journal.NewWorkflow(
            id=workflow, name="delete", subject=server.uuid, params={"vm_state": server.vm_state},
            context=ctx.to_message(),
        )  # fmt: skip
        journal.insert(connection, tables, row)
    return True


def again(world: World, server: Server, cell: str) -> bool:
    """Delete a server that is to be deleted while no workflow does it. False: it has changed meanwhile."""
    ctx = Context(user_id=server.user_id, project_id=server.project_id, overwrite=False)
    database, tables = world.database(cell)
    row = journal.NewWorkflow(
        id=ids.new_uuid(), name="delete", subject=server.uuid, params={"vm_state": server.vm_state},
        context=ctx.to_message(),
    )  # fmt: skip
    with database.write() as connection:
        if not servers.change(connection, server.uuid, {"task_state": _ROW.task_state}, version=server.version):
            return False
        records.start(connection, server.uuid, _ROW.action, ctx)
        journal.insert(connection, tables, row)
    wake(world, cell, row.id, ctx)
    return True


def _bury(world: World, ctx: Context, server: Server) -> None:
    """A server that never had a host has nothing but rows, and volumes that are to go with it."""
    database = world.cells.database(CELL0)
    _delete_flagged(world, ctx, server, block_devices.of(database, server.uuid))
    with database.write() as connection:
        records.finished(connection, server.uuid, _ROW.action, ctx)
        block_devices.delete_of(connection, server.uuid)
        servers.mark_deleted(connection, server.uuid, clock.utcnow())
    with world.cells.api.write() as connection:
        requests.queue_delete(connection, server.uuid)


def _delete_flagged(world: World, ctx: Context, server: Server, devices: Iterable[BlockDevice]) -> None:
    """Delete the volumes that were to go with a server that has not attached them. What cannot be deleted stays."""
    for device in devices:
        if device.volume_id and device.delete_on_termination:
            try:
                world.volumes.delete(ctx, device.volume_id)
            except KilonovaError as error:
                LOG.warning("Volume %s of server %s could not be deleted: %s", device.volume_id, server.uuid, error)
