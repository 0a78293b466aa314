"""Workflow `power`, in the server's cell: bring a guest to a power state that the user asked for.

The row of `TARGETS` says what the agent is asked and what the server is afterwards (workflow-facts.md 6.4). A failure
keeps the server's state, clears the task and leaves a fault; suspend, resume and hard reboot end in ERROR.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

from kilonova.bus.calls import Power, guest_power
from kilonova.compute.world import World
from kilonova.core import states
from kilonova.db.queries import servers
from kilonova.sql.engine import Connection
from kilonova.workflows.step import NOTHING, Failure, Run, Step, Workflow, Write
from kilonova.workflows.verbs import verb

PowerState = Literal["running", "paused", "shutdown", "suspended", "reboot-soft", "reboot-hard"]


@dataclass(frozen=True, slots=True)
class Target:
    """verb: what the agent is asked. vm_state, power_state: what the server is then. error: a failure ends in ERROR."""

    verb: PowerState
    vm_state: str
    power_state: int
    error: bool = False


TARGETS: Final[dict[str, Target]] = {
    "os-start": Target("running", states.ACTIVE, states.RUNNING),
    "os-stop": Target("shutdown", states.STOPPED, states.SHUTDOWN),
    "reboot-soft": Target("reboot-soft", states.ACTIVE, states.RUNNING),
    "reboot-hard": Target("reboot-hard", states.ACTIVE, states.RUNNING, error=True),
    "pause": Target("paused", states.PAUSED, states.POWER_PAUSED),
    "unpause": Target("running", states.ACTIVE, states.RUNNING),
    "suspend": Target("suspended", states.SUSPENDED, states.POWER_SUSPENDED, error=True),
    "resume": Target("running", states.ACTIVE, states.RUNNING, error=True),
}


def _target(run: Run) -> Target:
    return TARGETS[run.params["row"]]


def _request(world: World, run: Run, ticket: Any) -> Power:
    return Power(ticket, _target(run).verb)


def reached(world: World, run: Run) -> Write:
    """The server is what was asked for."""
    target = _target(run)
    values = {"vm_state": target.vm_state, "task_state": None, "power_state": target.power_state}

    def write(connection: Connection) -> None:
        servers.change(connection, run.subject, values, not_tasks=("deleting", "soft-deleting"))

    return write


def failed(world: World, run: Run, failure: Failure) -> Write:
    """The server stays what it was, or is in ERROR where nobody knows what it is."""
    values: dict[str, Any] = {"task_state": None}
    if _target(run).error and failure.code != "cancelled":
        values["vm_state"] = states.ERROR

    def write(connection: Connection) -> None:
        servers.change(connection, run.subject, values, not_tasks=("deleting", "soft-deleting"))

    return write


POWER = Workflow(
    "power",
    (
        Step(
            "power",
            verb(guest_power, build=_request, host=lambda run: str(run.params["host"]), seconds=600),
            NOTHING,
            event="compute_power",
        ),
    ),
    on_done=reached,
    on_failed=failed,
)
