"""One turn of a workflow: call the step's function, turn its outcome into the next body, commit, do what follows.

Runs in the one thread that has the workflow. Every function answers whether to go on at once (True) or to stop
(parked, or over). Exceptions that leave here are LostWorkflow and trouble with the database.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from kilonova.core.errors import KilonovaError, Unavailable
from kilonova.db.queries import journal as sql
from kilonova.workflows import plan as machine
from kilonova.workflows.journal import Also, WriteFailed, commit, started
from kilonova.workflows.plan import Body
from kilonova.workflows.run import ActiveRun, now_ms
from kilonova.workflows.step import (
    CANCEL,
    Done,
    Failure,
    FailureHook,
    Outcome,
    Parked,
    Recorder,
    Step,
    StepFailed,
    Write,
)

LOG = logging.getLogger(__name__)

HOOK_TRIES = 10
WRITE_TRIES = 5
"""So often a step's own SQL may fail by a lost connection or a deadlock before the step counts as failed."""


class Cancelled(StepFailed):
    """Somebody asked the workflow to stop: its subject is to be deleted."""

    code, message = machine.CANCELLED, "The operation was cancelled."


@dataclass(frozen=True, slots=True)
class Services:
    """What a turn needs of the engine. parked, moved and ended tell it what was committed."""

    world: Any
    recorder: Recorder
    journal: Callable[[str], sql.Journal]
    parked: Callable[[ActiveRun, Sequence[tuple[str, str]], float], None]
    moved: Callable[[ActiveRun], None]
    ended: Callable[[ActiveRun, list[sql.Live]], None]


def turn(services: Services, run: ActiveRun) -> bool:
    """Advance a run by one step, undo, or closing hook."""
    if run.body.log.end:
        return _close(services, run)
    if machine.choosing(run.body):
        return _choose(services, run)
    step = run.plan.steps[run.body.step]
    run.regrets.clear()
    try:
        if _cancelled(run):
            raise Cancelled()
        outcome = (step.undo if run.undoing else step.do)(services.world, run)
        return _outcome(services, run, step, outcome)
    except sql.LostWorkflow:
        _take_back(run)
        raise
    except WriteFailed as error:
        _pass_trouble(run, error.cause)
        return _failure(services, run, step, error.cause)
    except Exception as error:
        _pass_trouble(run, error)
        return _failure(services, run, step, error)


def _take_back(run: ActiveRun) -> None:
    """Another conductor has the workflow: what this call made beside what that one made is taken back."""
    for take_back in run.regrets:
        try:
            take_back()
        except Exception:
            LOG.exception("%s %s was taken over, and what it had made could not be taken back", run.name, run.id)


def start_failed(run: ActiveRun, error: Exception) -> Body:
    """The body of a workflow whose very first step could not be recorded as started."""
    step = run.plan.steps[0]
    return machine.failed(run.plan, machine.begin(run.body, now_ms()), _describe(error, step), now_ms())


def _outcome(services: Services, run: ActiveRun, step: Step, outcome: Outcome) -> bool:
    if isinstance(outcome, Parked):
        return _park(services, run, outcome)
    result = outcome if isinstance(outcome, Done) else Done()
    if run.undoing:
        return _undone(services, run, result.write)
    body = machine.done(run.plan, run.body, result.outputs, now_ms())
    if body.over:
        return _finish(services, run, step, body, result.write)
    following = run.plan.steps[body.step]
    also = (result.write, _finished(services, run, step, None), started(services.recorder, run, following))
    return _move(services, run, body, also)


def _park(services: Services, run: ActiveRun, parked: Parked) -> bool:
    waits = tuple((name, key) for name, key in parked.waits)
    if run.news(waits):
        return True  # it came while the step was running, which has not seen it
    _park_body(services, run, machine.parked(run.body, waits), waits, parked.seconds, parked.write)
    return False


def _park_body(
    services: Services, run: ActiveRun, body: Body, waits: Sequence[tuple[str, str]], seconds: float,
    write: Write | None = None,
) -> None:  # fmt: skip
    commit(services.journal(run.database), run, body, wake_ms=int(seconds * 1000), also=(write,))
    run.entry.trouble = 0
    services.parked(run, waits, seconds)


def _move(
    services: Services, run: ActiveRun, body: Body, also: Sequence[Also | Write | None], *, fresh: bool = False
) -> bool:
    """Commit a body that leaves the current step. fresh: a new attempt, to which old events say nothing."""
    consumed = run.consumed()
    others = commit(services.journal(run.database), run, body, consume=consumed, keep_events=not fresh, also=also)
    run.entry.trouble = 0
    run.forget(consumed)
    if fresh:
        run.entry.dirty = True
    services.moved(run)
    if body.over:
        services.ended(run, others)
    return not body.over


def _finish(services: Services, run: ActiveRun, step: Step, body: Body, write: Write | None) -> bool:
    """The last step is done: its write, on_done's and the end are one transaction."""
    hook, before = run.plan.workflow.on_done, run.body
    closing = None
    if hook is not None:
        run.body = Body(before.state, before.step, body.log)  # the hook sees the last outputs, of a run not yet over
        try:
            closing = hook(services.world, run)
        finally:
            run.body = before
    over = _over(services, run, None)
    return _move(services, run, body, (write, closing, _finished(services, run, step, None), over))


def _failure(services: Services, run: ActiveRun, step: Step, error: Exception) -> bool:
    tries = run.body.log.tries + 1
    if run.undoing:
        if tries < step.undo_tries:
            LOG.warning("undo of %s in %s %s failed, trying again: %s", step.name, run.name, run.id, error)
            return _retry(services, run, tries, 60.0)
        LOG.error("undo of %s in %s %s is given up", step.name, run.name, run.id, exc_info=error)
        return _undone(services, run, None, abandoned=True)
    if tries < step.tries and isinstance(error, Unavailable):
        LOG.info("step %s of %s %s failed, trying again: %s", step.name, run.name, run.id, error)
        return _retry(services, run, tries, 30.0)
    failure = _describe(error, step)
    LOG.log(
        logging.INFO if isinstance(error, KilonovaError) else logging.ERROR,
        "step %s of %s %s failed: %s", step.name, run.name, run.id, error,
        exc_info=None if isinstance(error, KilonovaError) else error,
    )  # fmt: skip
    body = machine.failed(run.plan, run.body, failure, now_ms())
    return _recorded(services, run, body, _finished(services, run, step, failure))


def _recorded(services: Services, run: ActiveRun, body: Body, record: Also) -> bool:
    """A failure must reach the journal even when the recorder cannot write it down (its server is gone)."""
    try:
        return _move(services, run, body, (record,))
    except WriteFailed as error:
        _pass_trouble(run, error.cause)
        LOG.warning("%s %s: the failure could not be recorded: %s", run.name, run.id, error.cause)
        return _move(services, run, body, ())


def _retry(services: Services, run: ActiveRun, tries: int, most: float) -> bool:
    services.moved(run)  # the next try is another verb
    seconds = min(most, 2.0 ** min(tries - 1, 10))
    _park_body(services, run, machine.retried(run.body, tries, now_ms() + int(seconds * 1000)), (), seconds)
    return False


def _undone(services: Services, run: ActiveRun, write: Write | None, *, abandoned: bool = False) -> bool:
    return _move(services, run, machine.undone(run.plan, run.body, now_ms(), abandoned=abandoned), (write,))


def _choose(services: Services, run: ActiveRun) -> bool:
    """The alternates are unwound: is there another candidate?"""
    plan = run.plan
    try:
        another = plan.alternates is not None and plan.alternates.next_candidate(services.world, run)
    except Exception as error:
        _pass_trouble(run, error)
        LOG.exception("%s %s: asking for another candidate failed", run.name, run.id)
        another = False
    if not another:
        return _move(services, run, machine.outward(plan, run.body), ())
    body = machine.again(plan, run.body, now_ms())
    try:
        return _move(services, run, body, (started(services.recorder, run, plan.steps[body.step]),), fresh=True)
    except WriteFailed as error:
        _pass_trouble(run, error.cause)
        LOG.warning("%s %s: another attempt could not be started: %s", run.name, run.id, error.cause)
        return _move(services, run, machine.outward(plan, run.body), ())


def _close(services: Services, run: ActiveRun) -> bool:
    """Everything is undone, or goes forward: the closing hook and the end."""
    workflow, log = run.plan.workflow, run.body.log
    failure = log.failure or Failure("", "internal", "The workflow failed.")
    hook: FailureHook | None = workflow.on_failed
    if log.end == "failed":
        hook = workflow.on_error or workflow.on_failed
    body = Body(log.end or "undone", max(0, run.body.step), log)
    over = _over(services, run, failure)
    try:
        write = hook(services.world, run, failure) if hook else None
        return _move(services, run, body, (write, over))
    except sql.LostWorkflow:
        raise
    except Exception as error:
        cause = error.cause if isinstance(error, WriteFailed) else error
        _pass_trouble(run, cause)
        tries = log.tries + 1
        if tries < HOOK_TRIES:
            LOG.warning("closing %s %s failed, trying again", run.name, run.id, exc_info=cause)
            return _retry(services, run, tries, 60.0)
        LOG.critical("closing %s %s is given up", run.name, run.id, exc_info=cause)
        return _move(services, run, body, ())


def _cancelled(run: ActiveRun) -> bool:
    if run.undoing or run.plan.beyond_return(run.body.step):
        return False
    return any(event.name == CANCEL and event.key == run.id for event in run.events)


def _pass_trouble(run: ActiveRun, error: Exception) -> None:
    """Trouble with the database is not the step's failure, unless it keeps coming: raise it on to the engine."""
    if sql.transient(error) and run.entry.trouble < WRITE_TRIES:
        raise error


def _describe(error: Exception, step: Step) -> Failure:
    details = "".join(traceback.format_exception(error))[-4000:]
    return machine.describe(error, step.name, details)


def _finished(services: Services, run: ActiveRun, step: Step, failure: Failure | None) -> Also:
    return lambda connection: services.recorder.step_finished(connection, run, step, failure)


def _over(services: Services, run: ActiveRun, failure: Failure | None) -> Also:
    return lambda connection: services.recorder.workflow_finished(connection, run, run.plan.workflow, failure)
