"""Verbs on hosts whose agent may be dead: waiting ends when the agent has been down for a while, not after an hour.

A guest that is then left behind is removed when its agent comes back (conductor.reconcilers.guests).
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC
from typing import Any

from kilonova.core import clock
from kilonova.workflows.step import VERB, Done, Outcome, Parked, Run, StepFunction, VerbFailed

PATIENCE_S = 60.0
"""So long an agent may seem down: after a restart of everything it has not beaten yet."""
LOOK_S = 30.0

Host = Callable[[Run], str | None]


def while_up(act: StepFunction, host: Host, gone: Callable[[Run, str], Outcome]) -> StepFunction:
    """The verb `act` on `host(run)`; when the host's agent stays down, `gone(run, host)` says how the step ends."""

    def do(world: Any, run: Run) -> Outcome:
        where = host(run)
        if where is None or run.event(VERB, run.ticket(where).id) is not None:
            return act(world, run)
        agent = world.agent_of(where)
        if agent is not None and agent.up:
            return _looking(act(world, run))
        if agent is None or _down_for(run, where) >= PATIENCE_S:
            return gone(run, where)
        return _looking(act(world, run))

    return do


def failed(_run: Run, host: str) -> Outcome:
    """A `gone` that lets another host be tried."""
    raise VerbFailed("agent_down", f"The agent of host {host} is down.", retriable=True)


def left(_run: Run, host: str) -> Outcome:
    """A `gone` that leaves the guest to its agent's return."""
    return Done({"left_on": host})


def _down_for(run: Run, host: str) -> float:
    """Seconds since the agent was first seen down by this workflow."""
    key, now = f"down:{host}", clock.utcnow().replace(tzinfo=UTC).timestamp()
    since = run.notes.get(key)
    if since is None:
        run.note(key, since := now)
    return float(now - since)


def _looking(outcome: Outcome) -> Outcome:
    if isinstance(outcome, Parked):
        return Parked(outcome.waits, min(outcome.seconds, LOOK_S), outcome.write)
    return outcome
