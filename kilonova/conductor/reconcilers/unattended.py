"""Servers that are being deleted or built, and no workflow is about it.

The row that says `deleting` and the workflow that deletes are written in one transaction, and so are a build's; so
this is for what cannot happen: journals lost or edited by hand, a closing hook given up after many tries. A server
that is to be deleted is deleted by a new workflow. One that is being built ends in ERROR with a fault, as after any
failure; what it may hold outside is given back when its user deletes it, or by the other reconcilers. Whoever
changes a row meanwhile wins (its version is compared), and nothing younger than GRACE_S is touched.
"""

from __future__ import annotations

import logging

from kilonova.compute import delete
from kilonova.compute.world import World
from kilonova.conductor.reconcilers.memory import Memory
from kilonova.core import clock, states
from kilonova.core.server import Server
from kilonova.db.queries import leftovers, servers
from kilonova.sql.engine import Database

LOG = logging.getLogger(__name__)

GRACE_S = 600.0
_LOST = "The build was interrupted and could not be taken up again."


def reconcile(world: World, _memory: Memory) -> int:
    """Delete or fail them; how many."""
    count = 0
    for cell in world.cells:
        with cell.database.read() as connection:
            found = leftovers.unattended(connection, clock.after(-GRACE_S))
        for server in servers.several(cell.database, found):
            if server.task_state == "deleting":
                LOG.warning("Server %s was to be deleted, but nothing does it: it is deleted now", server.uuid)
                count += delete.again(world, server, cell.uuid)
            else:
                LOG.warning("Server %s was to be built, but nothing does it: it is in ERROR now", server.uuid)
                count += _fail(cell.database, server)
    return count


def _fail(database: Database, server: Server) -> bool:
    values = {"vm_state": states.ERROR, "task_state": None}
    with database.write() as connection:
        if not servers.change(connection, server.uuid, values, version=server.version):
            return False
        servers.add_fault(connection, server.uuid, 500, _LOST, "", server.host)
    return True
