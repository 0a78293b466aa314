"""What users see of a workflow on a server: task_state, instance action, its event, faults.

Runs inside the journal's transactions in the server's cell; in the API database there is no server row yet, so
nothing is recorded there.
"""

from __future__ import annotations

from kilonova.cells.cells import API
from kilonova.db.queries import actions, servers
from kilonova.sql.engine import Connection
from kilonova.workflows.step import Failure, Run, Step, Workflow

EVENTS = {
    "build": "compute__do_build_and_run_instance",
    "build_with_accelerators": "compute__do_build_and_run_instance",
    "delete": "compute_terminate_instance",
}
"""The event of each workflow's action; a power action's stands in its params."""

KEPT_WHEN_LEAVING = ("deleting", "soft-deleting")
"""A server on its way out keeps its task_state, whatever else is still under way."""


def event_of(run: Run) -> str | None:
    """The name of the event under the workflow's action."""
    return run.params.get("event") or EVENTS.get(run.name)


def action_of(run: Run, default: str | None) -> str:
    """The instance action the workflow belongs to."""
    return run.params.get("action") or default or run.name


class ServerRecorder:
    """The engine's Recorder."""

    def __init__(self, default_actions: dict[str, str]) -> None:
        self._actions = default_actions

    def step_started(self, connection: Connection, run: Run, step: Step) -> None:
        """Show the step's task_state; the first step of an attempt opens the event."""
        if run.database == API:
            return
        if step.task_state is not None:
            servers.change(
                connection, run.subject, {"task_state": step.task_state}, not_tasks=KEPT_WHEN_LEAVING
            )
        if step.event is not None:
            action = action_of(run, self._actions.get(run.name))
            event = event_of(run) or step.event
            actions.open_event(connection, run.subject, action, run.ctx.request_id, event, run.params.get("host"))

    def step_finished(self, connection: Connection, run: Run, step: Step, error: Failure | None) -> None:
        """An error ends the event; a success leaves it open for the steps that follow."""
        if run.database == API or error is None:
            return
        self._close_events(connection, run, error)

    def workflow_finished(self, connection: Connection, run: Run, workflow: Workflow, error: Failure | None) -> None:
        """End the event and the action; keep a fault of what a user did not ask for."""
        if run.database == API:
            return
        action_id = self._close_events(connection, run, error)
        if action_id is not None:
            actions.close(connection, action_id, failed=error is not None)
        if error is not None and error.code != "cancelled":
            server = servers.read(connection, run.subject)
            if server is not None:
                servers.add_fault(
                    connection, run.subject, _fault_code(error), error.text, error.details, server.host
                )

    def _close_events(self, connection: Connection, run: Run, error: Failure | None) -> int | None:
        action = action_of(run, self._actions.get(run.name))
        traceback = None if error is None else error.details or error.text
        details = None if error is None else error.text[:255]
        return actions.close_events(
            connection, run.subject, action, run.ctx.request_id, traceback=traceback, details=details
        )


def _fault_code(error: Failure) -> int:
    return error.status if error.status else 500
