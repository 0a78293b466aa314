"""The conductor's side of workflows on the bus: it owns the engine and answers the rows that concern it.

Reports of hosts and beats of agents are `reports`; wiring serves both under the topic `conductor`, at the conductor's
id, so that another conductor can pass on what came to the wrong one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from kilonova.bus.bus import Bus, Handler
from kilonova.bus.calls import Event, Events, VerbReport, Wake
from kilonova.core.context import Context
from kilonova.core.pool import Executor
from kilonova.workflows.engine import Engine, Settings
from kilonova.workflows.step import Recorder, Workflow, World
from kilonova.workflows.timers import Timers


class Conductor:
    """One conductor. me: its id, unique among conductors and the same after a restart.

    agent_seen is what the handler of `agent_beat` has to call with the beat's agent, epoch and in_hand. told is called
    with the events that other services send, after the workflows that wait for them.
    """

    def __init__(
        self, world: World, workflows: Iterable[Workflow], recorder: Recorder, *, me: str, host: str = "",
        settings: Settings | None = None, pool: Executor | None = None, timers: Timers | None = None,
        told: Callable[[Sequence[Event]], None] | None = None,
    ) -> None:  # fmt: skip
        self._told = told
        self.engine = Engine(
            world, workflows, recorder, me=me, host=host, settings=settings, pool=pool, timers=timers
        )
        self._stop_serving: Callable[[], None] | None = None

    @property
    def agent_seen(self) -> Callable[..., None]:
        """`agent_seen(agent, epoch, in_hand)`."""
        return self.engine.agent_seen

    def handlers(self) -> dict[str, Handler]:
        """Rows of the topic `conductor` that concern workflows."""
        return {
            "wake_workflow": self._wake_workflow,
            "deliver_events": self._deliver_events,
            "verb_report": self._verb_report,
        }

    def start(self, bus: Bus, more: Mapping[str, Handler] | None = None) -> None:
        """Serve these handlers and `more` (the reports'), then take our work back and keep house."""
        self._stop_serving = bus.serve("conductor", {**self.handlers(), **(more or {})}, address=self.engine.me)
        self.engine.start()

    def close(self) -> None:
        """Serve no more, let running steps end."""
        if self._stop_serving is not None:
            self._stop_serving()
        self.engine.close()

    def _wake_workflow(self, _ctx: Context, request: Wake) -> None:
        self.engine.wake(request.database, request.workflow)

    def _deliver_events(self, _ctx: Context, request: Events) -> None:
        self.engine.deliver(request.events)
        if self._told is not None:
            self._told(request.events)

    def _verb_report(self, _ctx: Context, request: Any) -> None:
        report: VerbReport = request
        self.engine.deliver_report(report)
