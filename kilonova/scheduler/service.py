"""The scheduler as a service: what the bus calls. It joins the hosts in memory with the pipeline.

It must not know who asks, nor what becomes of the servers.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from kilonova.bus.calls import Destinations, HostsChanged, MeasureCapacity, SelectDestinations, Simulate, Simulated
from kilonova.core import clock, liveness
from kilonova.core.capacity import Capacity
from kilonova.core.context import Context
from kilonova.core.request_spec import RequestSpec
from kilonova.scheduler import capacity, pipeline, simulation
from kilonova.scheduler.choices import Choices, View
from kilonova.scheduler.claim import PlacementClient, release
from kilonova.scheduler.filters.other_servers_filter import AWAY, TOGETHER
from kilonova.scheduler.group_claims import GroupClaims
from kilonova.scheduler.host_store import Databases, HostStore
from kilonova.scheduler.narration import decision_of
from kilonova.scheduler.notices import Notices
from kilonova.scheduler.pipeline import Moment
from kilonova.scheduler.placing import Selections
from kilonova.scheduler.request import Group, Request, group_of
from kilonova.scheduler.settings import SchedulerSettings
from kilonova.scheduler.surroundings import Look, Others
from kilonova.scheduler.topology import wanted_by
from kilonova.scheduler.trace import Keeps, Ring, Trace, note_failure

LOG = logging.getLogger(__name__)


class Scheduler:
    """Handlers of the rows for the scheduler. Safe from any thread.

    unwanted answers those of some servers that nobody wants hosts for any more. A process that stood still may claim
    long after its caller has asked another, and the server was built and deleted: what is claimed then is given back.
    traces takes every decision after it was made. notices tells others of it.
    """

    def __init__(
        self, databases: Databases, placement_client: PlacementClient, settings: SchedulerSettings,
        unwanted: Callable[[Sequence[str]], Iterable[str]] = lambda _servers: (), traces: Keeps | None = None,
        others: Others = Others(),  # noqa: B008 (frozen)
        notices: Notices | None = None,
    ) -> None:  # fmt: skip
        self._settings, self._client, self._unwanted = settings, placement_client, unwanted
        self._store = HostStore(databases)
        self._groups = GroupClaims()
        self._choices = Choices()
        self._pipeline = pipeline.build(settings, placement_client, self._store.find_hosts)
        self._look = Look(databases, others, settings, pipeline.names_of(self._pipeline))
        self._down = liveness.down_after(settings.report_interval, settings.service_down_time)
        self.traces = traces if traces is not None else Ring()
        self._notices = notices

    def select_destinations(self, ctx: Context, asked: SelectDestinations) -> Destinations:
        """Find and claim hosts for these equal servers, all or none. NoValidHost, or what the claim raises."""
        if not asked.servers:
            return Destinations(())
        LOG.debug("Starting to schedule for instances: %s", asked.servers)
        if self._notices is not None:
            self._notices.tell("start", ctx, asked)
        found = Destinations(self._in_turn(ctx, asked))
        if self._notices is not None:
            self._notices.tell("end", ctx, asked)
        return found

    def _in_turn(self, ctx: Context, asked: SelectDestinations) -> Selections:
        """Decisions for one group are made one after the other."""
        group = asked.spec.group
        if group is None:
            return self._decided(ctx, asked)
        with self._groups.turn(group.uuid):
            return self._decided(ctx, asked)

    def _decided(self, ctx: Context, asked: SelectDestinations) -> Selections:
        spec = asked.spec
        trace = Trace(ctx.request_id, asked.servers, spec)
        try:
            with self._choices.decision() as choices:
                selections = self._selected(ctx, asked, trace, choices)
        except BaseException as error:
            note_failure(trace, error)
            raise
        finally:
            self.traces.add(trace)
            LOG.debug("%s", trace)
        if asked.operation == "build":
            self._leave_the_gone(asked.servers)
        for server, host in trace.winners.items():
            LOG.info("Server %s goes to %s", server, host)
        if spec.group is not None:
            self._groups.note(spec.group.uuid, trace.winners)
        return selections

    def _selected(self, ctx: Context, asked: SelectDestinations, trace: Trace, choices: View) -> Selections:
        with trace.timed("request"):
            request = self._request(ctx, asked.spec)
        if asked.operation == "rebuild":
            return pipeline.check_rebuild(self._pipeline, request, asked.servers[0], self._moment(), trace)
        selections = pipeline.select_destinations(
            self._pipeline, request, asked.servers, self._moment(), trace, choices=choices,
            alternates=asked.alternates, moving=asked.operation == "move",
        )  # fmt: skip
        self._store.note_claims([row[0].provider_uuid for row in selections], asked.spec.flavor, wanted_by(asked.spec))
        return selections

    def _leave_the_gone(self, servers: Sequence[str]) -> None:
        gone = list(self._unwanted(servers))
        if gone:
            LOG.warning("Servers %s are gone while hosts were chosen for them", ", ".join(gone))
            release(self._client, gone)

    def _request(self, ctx: Context, spec: RequestSpec) -> Request:
        return Request(
            spec, self._settings, self._store.snapshot(), group=self._group(spec),
            hosts_of=self._store.hosts_of(_named(spec)), around=self._look.around(ctx, spec),
        )  # fmt: skip

    def _moment(self) -> Moment:
        return Moment(self._store.consumed(), partial(liveness.is_up, now=clock.utcnow(), down_time=self._down))

    def simulate(self, ctx: Context, asked: Simulate) -> Simulated:
        """What would be decided now. Nothing is claimed, kept or remembered."""
        trace = Trace(ctx.request_id, tuple(f"server-{number + 1}" for number in range(asked.count)), asked.spec)
        simulation.simulate(self._pipeline, lambda: self._request(ctx, asked.spec), self._moment, trace)
        return Simulated(decision_of(trace, clock.utcnow()))

    def capacity(self, ctx: Context, asked: MeasureCapacity) -> Capacity:
        """How many more of these servers fit. Nothing is claimed."""
        return capacity.measure(self._pipeline, self._request(ctx, asked.spec), self._moment())

    def reload(self) -> None:
        """Read every host of every cell again before the next decision."""
        self._store.invalidate(())

    def hosts_changed(self, _ctx: Context, changed: HostsChanged) -> None:
        """Read these hosts again before the next decision; all when none is named."""
        self._store.invalidate(changed.hosts)

    def _group(self, spec: RequestSpec) -> Group | None:
        if spec.group is None:
            return None
        recent = self._groups.recent(spec.group.uuid)
        known = recent | self._store.members(spec.group.uuid, {*spec.group.members, *recent})
        return group_of(spec, {server: host for server, host in known.items() if host is not None})


def _named(spec: RequestSpec) -> list[str]:
    """The servers that hints name."""
    return [server for hint in (AWAY, TOGETHER) for server in spec.scheduler_hints.get(hint, ())]
