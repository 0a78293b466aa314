"""From a verb's message to its report: fencing, repeats, one verb at a time per server, how many at once.

A verb that is sent twice is done once and reported twice. A ticket older than one already seen is dropped without a
report: its sender has lost the workflow, and a report would only confuse its successor. Knows no verb by name.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import msgspec

from kilonova.agent.state import AgentState
from kilonova.agent.verbs import Verb
from kilonova.bus import calls
from kilonova.bus.bus import Bus
from kilonova.bus.calls import Ticket, VerbReport
from kilonova.core.context import Context
from kilonova.core.errors import Invalid, KilonovaError, Unavailable
from kilonova.core.pool import Pool
from kilonova.virt.driver import Driver, GuestAborted

LOG = logging.getLogger(__name__)

_UNBOUNDED_BUILDS = 128  # threads when `max_concurrent_builds` is 0, Nova's word for no bound
_OTHER_THREADS = 16  # everything but builds: never behind a queue of slow builds
_STOP_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class _Job:
    verb: Verb
    asked: Any
    ctx: Context


class Dispatch:
    """`moved(host)` is called after a verb that changes what a host's guests hold."""

    def __init__(
        self, bus: Bus, driver: Driver, state: AgentState, moved: Callable[[str], None], max_concurrent_builds: int
    ) -> None:
        self._bus, self._driver, self._state, self._moved = bus, driver, state, moved
        self._lock = threading.Lock()
        self._in_hand: dict[str, Ticket] = {}
        self._lines: dict[str, deque[_Job]] = {}
        self._builds = self._others = None
        if not driver.quick:
            self._builds = Pool("agent-build", max_concurrent_builds or _UNBOUNDED_BUILDS, service="agent")
            self._others = Pool("agent-verb", _OTHER_THREADS, service="agent")
        self._stopping = False

    def handlers(self, verbs: Iterable[Verb]) -> dict[str, Callable[[Context, Any], None]]:
        """A handler per row, for `Bus.serve`."""
        return {verb.row.name: self._handler(verb) for verb in verbs}

    def _handler(self, verb: Verb) -> Callable[[Context, Any], None]:
        def handle(ctx: Context, asked: Any) -> None:
            self._receive(_Job(verb, asked, ctx))

        return handle

    def in_hand(self) -> tuple[str, ...]:
        """Ids of the verbs accepted and not finished."""
        with self._lock:
            return tuple(self._in_hand)

    def stop(self) -> None:
        """Let running verbs end; what waits is dropped, and will be sent again."""
        self._stopping = True
        for pool in (self._builds, self._others):
            if pool is not None:
                pool.close(_STOP_SECONDS)

    def _receive(self, job: _Job) -> None:
        ticket: Ticket = job.asked.ticket
        if self._stopping:
            return
        if not self._state.admit(ticket):
            LOG.warning("Verb %s for server %s is of the past epoch %s", ticket.id, ticket.server, ticket.epoch)
            return
        with self._lock:
            repeated = ticket.id in self._in_hand
            self._in_hand[ticket.id] = ticket  # the report goes out under the newest epoch
            if repeated:
                return
            line = self._lines.get(ticket.server)
            if line is not None:
                line.append(job)
                return
            self._lines[ticket.server] = deque([job])
        self._run_line(ticket.server)

    def _run_line(self, server: str) -> None:
        """Work off a server's line: on this thread when the driver is quick, else each job in its pool."""
        if self._builds is not None and self._others is not None:
            with self._lock:
                job = self._lines[server][0]
            (self._builds if job.verb.build else self._others).submit(self._run_in_pool, server, job)
            return
        while True:
            with self._lock:
                job = self._lines[server][0]
            self._run(job)
            if not self._next(server):
                return

    def _run_in_pool(self, server: str, job: _Job) -> None:
        job.ctx.update_store()
        self._run(job)
        if self._next(server) and not self._stopping:
            self._run_line(server)

    def _next(self, server: str) -> bool:
        with self._lock:
            line = self._lines[server]
            line.popleft()
            if not line:
                del self._lines[server]
            return bool(line)

    def _run(self, job: _Job) -> None:
        ticket: Ticket = job.asked.ticket
        report: VerbReport | None = None
        try:
            if not self._stopping and not self._state.stale(ticket):
                report = self._state.result(ticket.id) or self._do(job)
        except Exception:
            LOG.exception("Verb %s could not be recorded", ticket.id)  # not reported either: it will be sent again
        with self._lock:
            newest = self._in_hand.pop(ticket.id)
        if report is not None:
            self._report(msgspec.structs.replace(report, ticket=newest), job.ctx)

    def _do(self, job: _Job) -> VerbReport:
        ticket: Ticket = job.asked.ticket
        try:
            report = VerbReport(ticket, True, job.verb.run(self._driver, job.asked))
            LOG.info("%s of server %s on %s done", job.verb.row.name, ticket.server, ticket.host)
        except KilonovaError as error:
            LOG.warning("Verb %s for server %s failed: %s", ticket.id, ticket.server, error.text)
            retriable = not isinstance(error, GuestAborted | Invalid)
            report = VerbReport(ticket, False, error_code=error.code, error=error.text, retriable=retriable)
        except Exception as error:
            LOG.exception("Verb %s for server %s failed", ticket.id, ticket.server)
            report = VerbReport(ticket, False, error_code="internal", error=f"{type(error).__name__}: {error}")
        self._state.keep_result(report)
        if job.verb.moves_usage:
            self._moved(ticket.host)
        return report

    def _report(self, report: VerbReport, ctx: Context) -> None:
        try:
            self._bus.cast(calls.verb_report, report, ctx=ctx)
        except Unavailable as error:
            LOG.warning("The report of verb %s waits until it is asked for again: %s", report.ticket.id, error.text)
