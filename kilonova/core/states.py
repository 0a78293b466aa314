"""States of a server and what the API calls them (server-view 1.4). One row per vm_state; all else derives from it."""

from __future__ import annotations

from typing import Final

# vm_state
BUILDING: Final = "building"
ACTIVE: Final = "active"
PAUSED: Final = "paused"
SUSPENDED: Final = "suspended"
STOPPED: Final = "stopped"
RESCUED: Final = "rescued"
RESIZED: Final = "resized"
SOFT_DELETED: Final = "soft-delete"
DELETED: Final = "deleted"
ERROR: Final = "error"
SHELVED: Final = "shelved"
SHELVED_OFFLOADED: Final = "shelved_offloaded"

# power_state
NOSTATE: Final = 0
RUNNING: Final = 1
POWER_PAUSED: Final = 3
SHUTDOWN: Final = 4
CRASHED: Final = 6
POWER_SUSPENDED: Final = 7

_REBUILD = dict.fromkeys(("rebuilding", "rebuild_block_device_mapping", "rebuild_spawning"), "REBUILD")
_RESIZE = dict.fromkeys(("resize_prep", "resize_migrating", "resize_migrated", "resize_finish"), "RESIZE")
_REBOOT = dict.fromkeys(("rebooting", "reboot_pending", "reboot_started"), "REBOOT")
_HARD_REBOOT = dict.fromkeys(("rebooting_hard", "reboot_pending_hard", "reboot_started_hard"), "HARD_REBOOT")

# vm_state: (status, {task_state: status in its place})
STATUS: Final[dict[str, tuple[str, dict[str, str]]]] = {
    ACTIVE: (
        "ACTIVE",
        _REBOOT | _HARD_REBOOT | {"updating_password": "PASSWORD"} | _REBUILD | {"migrating": "MIGRATING"} | _RESIZE,
    ),
    BUILDING: ("BUILD", {}),
    STOPPED: ("SHUTOFF", _RESIZE | _REBUILD),
    RESIZED: ("VERIFY_RESIZE", {"resize_reverting": "REVERT_RESIZE"}),
    PAUSED: ("PAUSED", {"migrating": "MIGRATING"}),
    SUSPENDED: ("SUSPENDED", {}),
    RESCUED: ("RESCUE", {}),
    ERROR: ("ERROR", _REBUILD),
    DELETED: ("DELETED", {}),
    SOFT_DELETED: ("SOFT_DELETED", {}),
    SHELVED: ("SHELVED", {}),
    SHELVED_OFFLOADED: ("SHELVED_OFFLOADED", {}),
}


def status_of(vm_state: str | None, task_state: str | None, *, deleted: bool = False) -> str:
    """The status the API shows; UNKNOWN for a vm_state that is none of ours."""
    if deleted:
        return "DELETED"
    default, exceptions = STATUS.get(vm_state or "", ("UNKNOWN", {}))
    return exceptions.get(task_state or "", default)


def states_of(status: str) -> tuple[list[str], list[str] | None]:
    """The vm_states, and where only task states lead to it the task_states, behind a status (errors.md 10.3).

    Both lists are empty for a status that maps to nothing. The second is None when any match is a row's default:
    then the task_state is not filtered at all.
    """
    vm_states: list[str] = []
    tasks: list[str] = []
    by_default = False
    for vm_state, (default, exceptions) in STATUS.items():
        matching = [task for task, name in exceptions.items() if name == status]
        if default == status or matching:
            vm_states.append(vm_state)
            tasks.extend(matching)
            by_default = by_default or default == status
    return vm_states, None if by_default else sorted(set(tasks))
