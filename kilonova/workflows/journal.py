"""What the engine writes: each transition of a run as one transaction, with whatever must stand or fall with it.

Knows the journal's statements and the state machine's documents; decides nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kilonova.db.queries import journal as sql
from kilonova.sql.engine import Connection
from kilonova.workflows import plan as machine
from kilonova.workflows.plan import Body
from kilonova.workflows.run import ActiveRun, Entry, now_ms
from kilonova.workflows.step import ENDED, Recorder, Step, Write

Also = Callable[[Connection], None]


class WriteFailed(Exception):
    """SQL that belongs to a step or to the recorder raised; everything of the transaction is rolled back."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(str(cause))
        self.cause = cause


def commit(
    journal: sql.Journal,
    run: ActiveRun,
    body: Body,
    *,
    wake_ms: int | None = None,
    consume: Sequence[int] = (),
    keep_events: bool = True,
    also: Sequence[Also | Write | None] = (),
) -> list[sql.Live]:
    """Write a run's next body, and `also` in the same transaction; then it is the run's body.

    Answers, for a body that is over, the other live workflows of the subject. Raises LostWorkflow, WriteFailed, or
    what the database raises; the run's body is then what it was.
    """
    before, others = run.body, []
    run.body = body  # what is written beside it sees the new state
    try:
        with journal.database.write() as connection:
            _fenced(journal, connection, run, body, wake_ms)
            journal.consume(connection, consume)
            if not keep_events:
                journal.forget_events(connection, run.subject, keep=("cancel", "ended"))
            for write in also:
                _beside(write, connection)
            if body.over:
                others = _end(journal, connection, run)
    except BaseException:
        run.body = before
        raise
    return others


def claim(
    journal: sql.Journal, entry: Entry, make: Callable[[sql.Row], ActiveRun | None], recorder: Recorder
) -> ActiveRun | None:
    """Take a workflow at the next epoch and, when it is new, start its first step, in one transaction.

    None when it is not to be had, or `make` does not know it. Raises what the database or the recorder raises;
    nothing is taken then.
    """
    with journal.database.write() as connection:
        row = journal.claim(connection, entry.id)
        run = None if row is None else make(row)
        if row is None or run is None:
            return None
        first = run.body.fresh
        if first:
            run.body = machine.begin(run.body, now_ms())
        body = run.body
        epoch = journal.take(connection, row, state=body.state, step=body.step, log=machine.encode(body.log))
        entry.epoch = epoch  # the recorder may ask for it; whoever catches a failure here takes it back
        if first:
            _beside(started(recorder, run, run.plan.steps[0]), connection)
    return run


def reload(
    journal: sql.Journal, entry: Entry, make: Callable[[sql.Row], ActiveRun | None]
) -> ActiveRun | None:
    """Read a workflow of ours again. LostWorkflow when it is ours no longer."""
    with journal.database.read() as connection:
        row = journal.load(connection, entry.id)
    if row is None or row.owner != journal.me or row.epoch != entry.epoch or row.state not in sql.LIVE:
        raise sql.LostWorkflow(id=entry.id, epoch=entry.epoch)
    return make(row)


def started(recorder: Recorder, run: ActiveRun, step: Step) -> Also:
    return lambda connection: recorder.step_started(connection, run, step)


def _fenced(journal: sql.Journal, connection: Connection, run: ActiveRun, body: Body, wake_ms: int | None) -> None:
    failure = body.log.failure
    journal.write(
        connection, run.id, run.epoch, state=body.state, step=body.step, log=machine.encode(body.log), wake_ms=wake_ms,
        error=None if failure is None else f"{failure.step}: {failure.code}: {failure.text}",
    )  # fmt: skip


def _beside(write: Also | Write | None, connection: Connection) -> None:
    if write is None:
        return
    try:
        write(connection)
    except Exception as error:
        raise WriteFailed(error) from error


def _end(journal: sql.Journal, connection: Connection, run: ActiveRun) -> list[sql.Live]:
    others = [live for live in sql.live_of(connection, journal.tables, run.subject) if live.id != run.id]
    if others:
        sql.add_event(connection, journal.tables, run.subject, ENDED, run.id, {"state": run.body.state})
    elif run.eventful:
        journal.forget_events(connection, run.subject)
    return others
