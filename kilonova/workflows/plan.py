"""The state machine of a workflow, pure: from (plan, body) and what happened to the next body. No time, no I/O.

A body is what the journal stores: state, index of the current step in the flat list, and the log. Forward, `step` is
the step that is started and not done; while undoing, the step whose undo is next; with `log.end` set, only the closing
hook is missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from kilonova.core.errors import KilonovaError
from kilonova.workflows.step import NOTHING, Alternates, Failure, Step, Workflow

TRACE_LENGTH = 200
CANCELLED = "cancelled"
"""Code of the failure that no alternate is tried after."""

Trace = tuple[str, int, str, int]
"""(step, attempt, what: done, failed, undone or abandoned, milliseconds it took)."""


class Back(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where undoing goes to: index of the last step to be undone, and whether another candidate is asked for then."""

    to: int
    alternate: bool = False


class Log(msgspec.Struct, frozen=True, omit_defaults=True):
    """The journal's JSON document. since: when the current step (or its undo) began, ms; 0 before the first step."""

    attempt: int = 1
    since: int = 0
    tries: int = 0
    outputs: dict[str, dict[str, Any]] = {}
    notes: dict[str, Any] = {}
    waits: tuple[tuple[str, str], ...] = ()
    back: Back | None = None
    failure: Failure | None = None
    end: Literal["", "undone", "failed"] = ""
    trace: tuple[Trace, ...] = ()


class Body(msgspec.Struct, frozen=True):
    """What changes while a workflow runs."""

    state: str = "running"
    step: int = 0
    log: Log = Log()

    @property
    def fresh(self) -> bool:
        """Whether no step has been started yet."""
        return self.log.since == 0

    @property
    def over(self) -> bool:
        return self.state in ("done", "undone", "failed")


@dataclass(frozen=True, slots=True)
class Plan:
    """A workflow flattened. group: the slice of `steps` that Alternates covers, empty when there is none."""

    workflow: Workflow
    steps: tuple[Step, ...]
    group: range
    alternates: Alternates | None
    last_return: int

    def in_group(self, step: int) -> bool:
        return step in self.group

    def beyond_return(self, step: int) -> bool:
        """Whether a failure of this step goes forward."""
        return step > self.last_return


_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(Log)


def encode(log: Log) -> str:
    return _ENCODER.encode(log).decode()


def decode(text: str) -> Log:
    return _DECODER.decode(text)


def flatten(workflow: Workflow) -> Plan:
    """The plan of a workflow."""
    steps: list[Step] = []
    group, alternates = range(0), None
    for item in workflow.steps:
        if isinstance(item, Alternates):
            group, alternates = range(len(steps), len(steps) + len(item.steps)), item
            steps.extend(item.steps)
        else:
            steps.append(item)
    names = [step.name for step in steps]
    last = names.index(workflow.last_return) if workflow.last_return else len(steps)
    return Plan(workflow, tuple(steps), group, alternates, last)


def begin(body: Body, now: int) -> Body:
    """The first step is started."""
    return Body("running", 0, msgspec.structs.replace(body.log, since=now))


def done(plan: Plan, body: Body, outputs: Mapping[str, Any], now: int) -> Body:
    """The current step is done; the next one is started, or the workflow is done."""
    step = plan.steps[body.step]
    last = body.step + 1 == len(plan.steps)
    log = _moved(body, step.name, "done", now, outputs={**body.log.outputs, step.name: dict(outputs)})
    return Body("done" if last else "running", body.step if last else body.step + 1, log)


def failed(plan: Plan, body: Body, failure: Failure, now: int) -> Body:
    """The current step failed: undo to the start of the alternates or of the list, or go forward to the end."""
    if body.log.back is None and plan.beyond_return(body.step):
        return Body("undoing", body.step, _moved(body, failure.step, "failed", now, failure=failure, end="failed"))
    again = plan.alternates is not None and plan.in_group(body.step) and _retriable(plan.alternates, failure)
    back = Back(plan.group.start, True) if again else Back(0)
    log = _moved(body, failure.step, "failed", now, failure=failure, back=back)
    return _skip(plan, Body("undoing", body.step, log))


def undone(plan: Plan, body: Body, now: int, *, abandoned: bool = False) -> Body:
    """The current step's undo is done (or given up)."""
    name = plan.steps[body.step].name
    log = _moved(body, name, "abandoned" if abandoned else "undone", now)
    return _skip(plan, Body("undoing", body.step - 1, log))


def choosing(body: Body) -> bool:
    """Whether the alternates are unwound and another candidate is to be asked for."""
    back = body.log.back
    return back is not None and back.alternate and body.step < back.to


def again(plan: Plan, body: Body, now: int) -> Body:
    """There is another candidate: the group starts anew, its outputs forgotten."""
    inner = {plan.steps[index].name for index in plan.group}
    outputs = {name: value for name, value in body.log.outputs.items() if name not in inner}
    log = msgspec.structs.replace(
        body.log, attempt=body.log.attempt + 1, outputs=outputs, back=None, failure=None, since=now, tries=0, waits=()
    )
    return Body("running", plan.group.start, log)


def outward(plan: Plan, body: Body) -> Body:
    """There is none: the steps before the group are undone too."""
    return _skip(plan, Body("undoing", body.step, msgspec.structs.replace(body.log, back=Back(0))))


def parked(body: Body, waits: tuple[tuple[str, str], ...]) -> Body:
    """The current step waits."""
    return Body("parked", body.step, msgspec.structs.replace(body.log, waits=waits))


def retried(body: Body, tries: int, since: int) -> Body:
    """The current step (or undo, or closing hook) has failed so often and waits for its next try at `since`."""
    return Body("parked", body.step, msgspec.structs.replace(body.log, waits=(), tries=tries, since=since))


def noted(body: Body, key: str, value: Any) -> Body:
    """A durable note, or without it when value is None."""
    notes = {name: old for name, old in body.log.notes.items() if name != key}
    if value is not None:
        notes[key] = value
    return Body(body.state, body.step, msgspec.structs.replace(body.log, notes=notes))


def describe(error: BaseException, step: str, details: str = "") -> Failure:
    """An exception as the journal keeps it."""
    if isinstance(error, KilonovaError):
        code = getattr(error, "error_code", None) or error.code
        return Failure(step, code, error.text, error.status, bool(getattr(error, "retriable", False)), details)
    retriable = bool(getattr(error, "retriable", True))
    return Failure(step, "internal", f"{type(error).__name__}: {error}"[:1000], retriable=retriable, details=details)


def _moved(body: Body, name: str, what: str, now: int, **changes: Any) -> Log:
    trace = (*body.log.trace, (name, body.log.attempt, what, max(0, now - body.log.since)))[-TRACE_LENGTH:]
    return msgspec.structs.replace(body.log, since=now, tries=0, waits=(), trace=trace, **changes)


def _skip(plan: Plan, body: Body) -> Body:
    """Pass over undos that are NOTHING; at the bottom, an unwinding without alternates is at its end."""
    back = body.log.back or Back(0)
    step = body.step
    while step >= back.to and plan.steps[step].undo is NOTHING:
        step -= 1
    log = body.log
    if step < back.to and not back.alternate:
        log = msgspec.structs.replace(log, end="undone")
    return Body("undoing", step, log)


def _retriable(alternates: Alternates, failure: Failure) -> bool:
    if failure.code == CANCELLED:
        return False
    return failure.retriable if alternates.retriable is None else alternates.retriable(failure)
