"""Steps that have an agent do something: `verb(...)` makes the function that sends, waits and reads the report.

It knows the table of calls and nothing of what a verb does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kilonova.bus.calls import VERBS, Call, Ticket, VerbReport
from kilonova.workflows.step import VERB, Delivered, Done, Outcome, Parked, Run, StepFunction, VerbFailed, Write

Build = Callable[[Any, Run, Ticket], Any]


def verb(
    row: Call[Any, Any],
    *,
    build: Build,
    host: Callable[[Run], str | None],
    seconds: float = 3600.0,
    write: Callable[[Any, Run, dict[str, Any]], Write | None] | None = None,
) -> StepFunction:
    """A do or an undo that has the agent of `host(run)` carry out one verb.

    build(world, run, ticket) makes the row's request; it is called again after a restart or an adoption and must then
    give an equal request but for the ticket's epoch. The step is done with the report's `result` as outputs, and
    write(world, run, result) as its SQL. Raises VerbFailed as the agent reported it; with code "verb_timeout"
    (retriable) when no report came within `seconds` of the step's start; "no_agent" (retriable) when nobody ever
    served the host. host(run) may answer None: then there is nothing to do and the step is done (for undos that come
    before a host was chosen).
    """
    if row.name not in VERBS:
        raise ValueError(f"{row.name} is no verb")

    def run_verb(world: Any, run: Run) -> Outcome:
        where = host(run)
        if where is None:
            return Done()
        ticket = run.ticket(where)
        report = run.event(VERB, ticket.id)
        if report is not None:
            result = _result(report)
            return Done(result, write(world, run, result) if write else None)
        left = seconds - run.elapsed
        if left <= 0:
            raise VerbFailed("verb_timeout", f"{row.name} on {where}: no report in {seconds:g} seconds", retriable=True)
        run.open_verb(row, build(world, run, ticket), ticket)
        return Parked(((VERB, ticket.id),), left)

    return run_verb


def payload_of(report: VerbReport) -> dict[str, Any]:
    """A report as an event's payload."""
    return {
        "ok": report.ok, "result": report.result, "error_code": report.error_code, "error": report.error,
        "retriable": report.retriable,
    }  # fmt: skip


def _result(report: Delivered) -> dict[str, Any]:
    if report.payload["ok"]:
        return dict(report.payload["result"])
    code = report.payload["error_code"] or VerbFailed.code
    raise VerbFailed(code, report.payload["error"] or f"The verb failed: {code}", retriable=report.payload["retriable"])
