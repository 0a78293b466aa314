"""The verbs that are out: sent to agents and not reported yet. The journal is the outbox, this is its memory.

A cast may be lost or doubled, so a verb is sent again when its agent's epoch changes (the process restarted), when two
beats in a row do not list it, or after a back-off, until its report comes or its step ends. Agents answer a repeated id
from what they did. At most `limit` verbs are open per agent address; more wait here in order. After a restart the
steps are called again and open their verbs anew.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from kilonova.bus.bus import Bus
from kilonova.bus.calls import Call
from kilonova.core.context import Context
from kilonova.core.errors import KilonovaError
from kilonova.core.pool import Executor
from kilonova.workflows.step import AgentAddress
from kilonova.workflows.timers import Timer, Timers

LOG = logging.getLogger(__name__)

FIRST_RESEND_S = 15.0
LAST_RESEND_S = 60.0
OMITTED = 2
"""So many beats without the verb, and it is sent again: a single one may have crossed its report."""


@dataclass(slots=True, eq=False)
class OpenVerb:
    """One verb. epoch: the agent's when it was last sent; None while it waits for its turn."""

    id: str
    workflow: tuple[str, str]
    host: str
    row: Call[Any, Any]
    request: Any
    ctx: Context
    agent: str
    epoch: int | None = None
    omitted: int = 0
    backoff: float = FIRST_RESEND_S
    timer: Timer | None = None


class VerbDesk:
    """See the module. All functions are safe from any thread; casts are made outside the lock."""

    def __init__(
        self, bus: Bus, agent_of: Callable[[str], AgentAddress | None], timers: Timers, pool: Executor,
        *, limit: int = 500,
    ) -> None:  # fmt: skip
        self._bus, self._agent_of, self._timers, self._pool, self._limit = bus, agent_of, timers, pool, limit
        self._lock = threading.Lock()
        self._verbs: dict[str, OpenVerb] = {}
        self._sent: dict[str, OrderedDict[str, OpenVerb]] = {}  # by agent
        self._queued: dict[str, deque[OpenVerb]] = {}
        self._of_workflow: dict[tuple[str, str], set[str]] = {}

    def open(
        self, workflow: tuple[str, str], host: str, id_: str, row: Call[Any, Any], request: Any, ctx: Context
    ) -> bool:
        """Send a verb, now or in its turn; again at once if it is open already with an older request (a new epoch).

        False when nobody ever served the host.
        """
        address = self._agent_of(host)
        if address is None:
            return False
        with self._lock:
            known = self._verbs.get(id_)
            if known is not None and known.request == request:
                return True
        self.close(id_)
        verb = OpenVerb(id_, workflow, host, row, request, ctx, address.agent)
        with self._lock:
            self._verbs[id_] = verb
            self._of_workflow.setdefault(workflow, set()).add(id_)
            sent = self._sent.setdefault(verb.agent, OrderedDict())
            if len(sent) >= self._limit:
                self._queued.setdefault(verb.agent, deque()).append(verb)
                return True
            sent[id_] = verb
        self._send(verb, address.epoch)
        return True

    def close(self, id_: str) -> None:
        """The verb is reported or no longer wanted; the next in line is sent."""
        with self._lock:
            verb = self._verbs.pop(id_, None)
            if verb is None:
                return
            ids = self._of_workflow.get(verb.workflow)
            if ids is not None:
                ids.discard(id_)
                if not ids:
                    del self._of_workflow[verb.workflow]
            if verb.timer is not None:
                verb.timer.cancel()
            turn = self._next_of(verb)
        if turn is not None:
            self._resend(turn)

    def forget(self, workflow: tuple[str, str]) -> None:
        """Close every verb of a workflow."""
        if workflow in self._of_workflow:
            for id_ in list(self._of_workflow.get(workflow, ())):
                self.close(id_)

    def agent_seen(self, agent: str, epoch: int, in_hand: Collection[str]) -> int:
        """A beat: send again what its process cannot know or twice did not list. How many were sent."""
        held = set(in_hand)
        again = []
        with self._lock:
            for verb in self._sent.get(agent, {}).values():
                verb.omitted = 0 if verb.id in held else verb.omitted + 1
                if verb.epoch is None or verb.epoch != epoch or verb.omitted >= OMITTED:
                    again.append(verb)
        for verb in again:
            self._send(verb, epoch)
        return len(again)

    def open_at(self, agent: str) -> tuple[int, int]:
        """(sent, waiting) verbs of an agent."""
        with self._lock:
            return len(self._sent.get(agent, ())), sum(v.id in self._verbs for v in self._queued.get(agent, ()))

    def _next_of(self, verb: OpenVerb) -> OpenVerb | None:
        """Under the lock: take a verb off its agent's list; who comes in its place."""
        sent = self._sent.get(verb.agent)
        if sent is None or sent.pop(verb.id, None) is None:
            return None
        queue = self._queued.get(verb.agent)
        while queue:
            turn = queue.popleft()
            if self._verbs.get(turn.id) is turn:
                sent[turn.id] = turn
                return turn
        if not sent:
            del self._sent[verb.agent]
            self._queued.pop(verb.agent, None)
        return None

    def _resend(self, verb: OpenVerb) -> None:
        address = self._agent_of(verb.host)
        if address is not None and address.agent != verb.agent:
            self._move(verb, address.agent)
        self._send(verb, address.epoch if address else -1)

    def _move(self, verb: OpenVerb, agent: str) -> None:
        """The host is served by another agent process now."""
        with self._lock:
            turn = self._next_of(verb)
            verb.agent = agent
            self._sent.setdefault(agent, OrderedDict())[verb.id] = verb
        if turn is not None:
            self._resend(turn)

    def _send(self, verb: OpenVerb, epoch: int) -> None:
        with self._lock:
            if self._verbs.get(verb.id) is not verb:
                return
            verb.epoch, verb.omitted = epoch, 0
            if verb.timer is not None:
                verb.timer.cancel()
            verb.timer = self._timers.after(verb.backoff, self._pool.submit, self._late, verb)
            verb.backoff = min(LAST_RESEND_S, verb.backoff * 2)
        try:
            self._bus.cast(verb.row, verb.request, to=verb.agent, ctx=verb.ctx)
        except KilonovaError as error:
            LOG.info("verb %s %s could not be sent to %s, trying again later: %s", verb.row.name, verb.id, verb.agent,
                     error)  # fmt: skip

    def _late(self, verb: OpenVerb) -> None:
        LOG.info("verb %s %s was not reported yet, sending it again", verb.row.name, verb.id)
        self._resend(verb)
