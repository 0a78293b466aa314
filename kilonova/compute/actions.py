"""THE action table: what may be done to a server in which state, and the claim that makes it so.

Columns are checked left to right: lock, host, vm_state, task_state, launched (errors.md 11). The row is also the
compare-and-swap: the check and the claim are one UPDATE, so two requests cannot both pass; rows that take any state
compare the server's version instead, so that a concurrent delete wins.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kilonova.core import states as s
from kilonova.core.context import Context
from kilonova.core.errors import Conflict
from kilonova.core.server import Server
from kilonova.db.queries import servers
from kilonova.sql.engine import Connection

ANY: Final = "any"
NONE: Final = "none"


class ServerLocked(Conflict):
    """A locked server, and the caller is no administrator."""

    code, message = "server_locked", "Instance {server} is locked"


class ServerHasNoHost(Conflict):
    """The action needs a host."""

    code, message = "server_has_no_host", "Instance {server} is not on a host"


class WrongState(Conflict):
    """The state forbids it, or it changed while we looked (errors.md 11 has the words)."""

    code = "wrong_state"
    message = "Cannot '{action}' instance {server} while it is in {what} {value}"


@dataclass(frozen=True, slots=True)
class Action:
    """One row.

    vm_states: those allowed, or ANY. tasks: NONE, ANY, or the task states allowed besides none. launched: must have
    been ACTIVE once. lock: refused on a locked server unless the caller is an administrator. host: must be on one.
    task_state: what is set; None sets nothing. action: the instance action. follows: the workflow that does it.
    """

    name: str
    action: str
    vm_states: tuple[str, ...] | str = ANY
    tasks: tuple[str, ...] | str = NONE
    launched: bool = True
    lock: bool = True
    host: bool = False
    task_state: str | None = None
    follows: str | None = None


_POWER_LATER = (s.ACTIVE, s.STOPPED, s.PAUSED, s.SUSPENDED)
_HARD_OVER = (
    "rebooting", "reboot_pending", "reboot_started", "rebooting_hard", "resuming", "unpausing", "pausing", "suspending",
)  # fmt: skip

ACTIONS: Final[tuple[Action, ...]] = (
    Action("delete", "delete", tasks=ANY, launched=False, task_state="deleting", follows="delete"),
    Action("os-start", "start", (s.STOPPED,), host=True, task_state="powering-on", follows="power"),
    Action("os-stop", "stop", (s.ACTIVE, s.ERROR), host=True, task_state="powering-off", follows="power"),
    Action("reboot-soft", "reboot", (s.ACTIVE,), task_state="rebooting", follows="power"),
    Action("reboot-hard", "reboot", (*_POWER_LATER, s.ERROR), _HARD_OVER, task_state="rebooting_hard", follows="power"),
    Action("pause", "pause", (s.ACTIVE,), task_state="pausing", follows="power"),
    Action("unpause", "unpause", (s.PAUSED,), task_state="unpausing", follows="power"),
    Action("suspend", "suspend", (s.ACTIVE,), task_state="suspending", follows="power"),
    Action("resume", "resume", (s.SUSPENDED,), task_state="resuming", follows="power"),
    Action("lock", "lock", tasks=ANY, launched=False, lock=False),
    Action("unlock", "unlock", tasks=ANY, launched=False, lock=False),
    Action("os-resetState", "resetState", tasks=ANY, launched=False, lock=False),
    Action("metadata", "metadata", (s.ACTIVE, s.PAUSED, s.SUSPENDED, s.STOPPED), ANY),
    Action("tags", "tags", (s.ACTIVE, s.PAUSED, s.SUSPENDED, s.STOPPED), ANY, launched=False, lock=False),
    Action("console-output", "console-output", tasks=ANY, launched=False, lock=False, host=True),
    Action(
        "attach-volume", "attach_volume",
        (s.ACTIVE, s.PAUSED, s.STOPPED, s.RESIZED, s.SOFT_DELETED, s.SHELVED, s.SHELVED_OFFLOADED),
        follows="attach_volume",
    ),
    Action(
        "detach-volume", "detach_volume",
        (s.ACTIVE, s.PAUSED, s.STOPPED, s.RESIZED, s.SOFT_DELETED, s.SHELVED, s.SHELVED_OFFLOADED),
        follows="detach_volume",
    ),
)  # fmt: skip

ROWS: Final[dict[str, Action]] = {row.name: row for row in ACTIONS}


def check(row: Action, server: Server, ctx: Context) -> None:
    """Raise what forbids the action now: ServerLocked, ServerHasNoHost or WrongState, in the table's order."""
    if row.lock and server.locked_by and not ctx.is_admin:
        raise ServerLocked(server=server.uuid)
    if row.host and not server.host:
        raise ServerHasNoHost(server=server.uuid)
    if row.vm_states != ANY and server.vm_state not in row.vm_states:
        raise WrongState(action=row.name, server=server.uuid, what="vm_state", value=server.vm_state)
    if row.tasks != ANY and server.task_state is not None and server.task_state not in row.tasks:
        raise WrongState(action=row.name, server=server.uuid, what="task_state", value=server.task_state)
    if row.launched and server.launched_at is None:
        raise WrongState(action=row.name, server=server.uuid, what="launched_at", value=None)


def claim(connection: Connection, row: Action, server: Server, **values: object) -> bool:
    """Set the row's task_state (and `values`) if the server still is as the row demands; False when it is not.

    Part of the caller's transaction in the server's cell, together with whatever follows.
    """
    changes: dict[str, object] = dict(values)
    if row.task_state is not None:
        changes["task_state"] = row.task_state
    if row.tasks == ANY:
        return servers.change(connection, server.uuid, changes, version=server.version)
    tasks = (None,) if row.tasks == NONE else (None, *row.tasks)
    vm_states = None if isinstance(row.vm_states, str) else row.vm_states
    return servers.change(connection, server.uuid, changes, tasks=tasks, states=vm_states)
