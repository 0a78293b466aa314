"""Requests and hand-overs that nobody finishes.

A `boot` hands each server over in a fixed order, and its closing hook puts whatever is left into cell0; when even that
is given up after many tries (a database that stays away), three things may be left. A workflow held in a cell whose
server the API database says is there: it is let go. One whose server is elsewhere or nowhere: it is discarded with
its row. And build requests that no `boot` knows: a new one is started that puts them into cell0 with a fault, by the
same journaled steps, so that their users see what happened and can delete them. Nothing younger than GRACE_S is
touched.
"""

from __future__ import annotations

import logging

from kilonova.cells.cells import API
from kilonova.compute.waking import wake
from kilonova.compute.world import World
from kilonova.conductor.reconcilers.memory import Memory
from kilonova.core import clock, ids
from kilonova.core.context import Context
from kilonova.db.queries import block_devices, journal, leftovers, requests, servers

LOG = logging.getLogger(__name__)

GRACE_S = 600.0
_LOST = "The request was lost before a host was found for it."


def reconcile(world: World, _memory: Memory) -> int:
    """Finish or take back; how many."""
    count = 0
    with world.cells.api.read() as connection:
        booting = leftovers.booting(connection)
    for cell in world.cells:
        with cell.database.read() as connection:
            held = leftovers.held(connection, clock.after(-GRACE_S))
        for workflow, server in held:
            if server not in booting:
                _end_hold(world, cell.uuid, workflow, server)
                count += 1
    with world.cells.api.read() as connection:
        old = leftovers.old_requests(connection, clock.after(-GRACE_S))
    for server in old:
        if server not in booting:
            count += _give_up(world, server)
    return count


def _end_hold(world: World, cell: str, workflow: str, server: str) -> None:
    mapping = requests.mapping(world.cells.api, server)
    database, tables = world.database(cell)
    if mapping is not None and mapping.cell_uuid == cell:
        LOG.warning("The build %s of server %s was still held; it is let go", workflow, server)
        with database.write() as connection:
            journal.release(connection, tables, workflow)
        wake(world, cell, workflow, Context(overwrite=False))
        return
    LOG.warning("The build %s of server %s, which was never handed over, is discarded", workflow, server)
    with database.write() as connection:
        if journal.discard(connection, tables, workflow):
            servers.mark_deleted(connection, server, clock.utcnow())
            block_devices.delete_of(connection, server)


def _give_up(world: World, server: str) -> bool:
    request = requests.get(world.cells.api, server)
    if request is None:
        return False
    LOG.warning("No workflow attends to the request for server %s; it goes to cell0", server)
    ctx = Context(user_id=request.server.user_id, project_id=request.server.project_id, overwrite=False)
    world.placement.delete_allocations(server)
    params = {"servers": [server], "fault": {"code": 500, "text": _LOST}}
    new = journal.NewWorkflow(ids.derived_uuid(server, "lost"), "boot", server, params, ctx.to_message())
    database, tables = world.database(API)
    with database.write() as connection:
        made = journal.insert(connection, tables, new)
    if made:
        wake(world, API, new.id, ctx)
    return made
