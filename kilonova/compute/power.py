"""Power actions, locks and resets: what the action table says, claimed and handed to the workflow that follows."""

from __future__ import annotations

from kilonova.compute import actions
from kilonova.compute.actions import Action
from kilonova.compute.lookup import Found, ServerNotFound, in_cell
from kilonova.compute.waking import wake
from kilonova.compute.world import World
from kilonova.core import ids, states
from kilonova.core.context import Context
from kilonova.core.errors import Forbidden
from kilonova.core.server import Server
from kilonova.db.queries import actions as records
from kilonova.db.queries import journal, servers

EVENTS = {
    "os-start": "compute_start_instance", "os-stop": "compute_stop_instance",
    "reboot-soft": "compute_reboot_instance", "reboot-hard": "compute_reboot_instance",
    "pause": "compute_pause_instance", "unpause": "compute_unpause_instance",
    "suspend": "compute_suspend_instance", "resume": "compute_resume_instance",
}  # fmt: skip


class UnlockForbidden(Forbidden):
    """Somebody else locked it."""

    code = "unlock_forbidden"
    message = "Policy doesn't allow os_compute_api:os-lock-server:unlock:unlock_override to be performed."


def start(world: World, ctx: Context, found: Found, name: str) -> None:
    """Begin a power action: one of the table's rows that the workflow `power` follows."""
    row = actions.ROWS[name]
    server, cell = in_cell(found)
    actions.check(row, server, ctx)
    workflow = ids.new_uuid()
    database, tables = world.database(cell)
    with database.write() as connection:
        if not actions.claim(connection, row, server):
            raise _lost(row, servers.read(connection, server.uuid), server)
        records.start(connection, server.uuid, row.action, ctx)
        params = {"row": name, "host": server.host, "action": row.action, "event": EVENTS[name]}
        new = journal.NewWorkflow(
            id=workflow, name="power", subject=server.uuid, params=params, context=ctx.to_message()
        )
        journal.insert(connection, tables, new)
    wake(world, cell, workflow, ctx)


def _lost(row: Action, now: Server | None, before: Server) -> actions.WrongState:
    """Another request was faster."""
    server = now or before
    what, value = ("task_state", server.task_state) if server.task_state else ("vm_state", server.vm_state)
    return actions.WrongState(action=row.name, server=server.uuid, what=what, value=value)


def _scheduled(found: Found) -> tuple[Server, str]:
    """These actions declare no conflict: a server that has no cell yet is not found (operations.json)."""
    if found.cell is None:
        raise ServerNotFound(server=found.server.uuid)
    return found.server, found.cell


def lock(world: World, ctx: Context, found: Found, reason: str | None) -> None:
    """Lock a server for its owner or an administrator; an owner's second lock changes nothing."""
    server, cell = _scheduled(found)
    is_owner = server.project_id == ctx.project_id
    if is_owner and server.locked_by is not None:
        return
    _set(world, ctx, cell, server, "lock", {"locked_by": "owner" if is_owner else "admin", "locked_reason": reason})


def unlock(world: World, ctx: Context, found: Found, *, may_override: bool) -> None:
    """Unlock a server; one that an administrator or another project locked needs a right of its own."""
    server, cell = _scheduled(found)
    by_owner = server.locked_by in (None, "owner") and server.project_id == ctx.project_id
    if not by_owner and not may_override:
        raise UnlockForbidden
    _set(world, ctx, cell, server, "unlock", {"locked_by": None, "locked_reason": None})


def reset(world: World, ctx: Context, found: Found, state: str) -> None:
    """Set vm_state to active or error and clear the task, whatever is going on."""
    server, cell = _scheduled(found)
    vm_state = states.ACTIVE if state == "active" else states.ERROR
    _set(world, ctx, cell, server, "resetState", {"vm_state": vm_state, "task_state": None})


def _set(world: World, ctx: Context, cell: str, server: Server, action: str, values: dict[str, object]) -> None:
    with world.cells.database(cell).write() as connection:
        servers.change(connection, server.uuid, values)
        records.finished(connection, server.uuid, action, ctx)
