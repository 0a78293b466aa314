"""How one workflow makes others of the same subject give way: cancel them, wait until they have ended.

For a delete that comes while a build runs. Everything goes over the bus: the others may be another conductor's.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from kilonova.bus.calls import Event, Events, deliver_events
from kilonova.db.queries import journal as sql
from kilonova.workflows.step import CANCEL, ENDED, Done, Outcome, Parked, Run, StepFailed, StepFunction

POLL_S = 10.0


class InTheWay(StepFailed):
    """Another operation on the same server did not end in time."""

    code, message = "in_the_way", "The operation {name} is still running."


def others_end(
    *, cancel: Collection[str] = (), wait_for: Collection[str] = (), seconds: float = 900.0
) -> StepFunction:
    """A do that cancels older live workflows of the run's subject whose name is in `cancel`, and is done when those
    and the ones named in `wait_for` have ended, in the run's own database. InTheWay after so many seconds.

    Only workflows older than the run count, so that two can never wait for each other. Pair it with NOTHING.
    """
    named = {*cancel, *wait_for}

    def do(world: Any, run: Run) -> Outcome:
        older = _older(world, run, named)
        if not older:
            return Done()
        if run.elapsed > seconds:
            raise InTheWay(name=older[0].name)
        asked = tuple(
            Event(run.database, run.subject, CANCEL, one.id)
            for one in older
            if one.name in cancel and run.event(CANCEL, one.id) is None
        )
        if asked:
            world.bus.cast(deliver_events, Events(asked), ctx=run.ctx)
        return Parked(tuple((ENDED, one.id) for one in older), min(POLL_S, seconds))

    return do


def _older(world: Any, run: Run, names: Collection[str]) -> list[sql.Live]:
    database, tables = world.database(run.database)
    with database.read() as connection:
        live = sql.live_of(connection, tables, run.subject)
    before = live[: next((index for index, one in enumerate(live) if one.id == run.id), len(live))]
    return [one for one in before if one.name in names]
