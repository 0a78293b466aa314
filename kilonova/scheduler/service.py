"""The scheduler as a service: what the bus calls. It joins the hosts in memory with the pipeline.

It must not know who asks, nor what becomes of the servers.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from kilonova.bus.calls import Destinations, HostsChanged, SelectDestinations
from kilonova.core import clock, liveness
from kilonova.core.context import Context
from kilonova.core.request_spec import RequestSpec
from kilonova.scheduler import pipeline
from kilonova.scheduler.claim import PlacementClient, give_back
from kilonova.scheduler.filters.other_servers_filter import AWAY, TOGETHER
from kilonova.scheduler.group_claims import GroupClaims
from kilonova.scheduler.host_store import Databases, HostStore
from kilonova.scheduler.pipeline import Moment
from kilonova.scheduler.placing import Selections
from kilonova.scheduler.request import Group, Request, group_of
from kilonova.scheduler.settings import SchedulerSettings
from kilonova.scheduler.trace import Ring, Trace

LOG = logging.getLogger(__name__)


class Scheduler:
    """Handlers of the rows `select_destinations` and `hosts_changed`. Safe from any thread.

    unwanted answers those of some servers that nobody wants hosts for any more. A process that stood still may claim
    long after its caller has asked another, and the server was built and deleted: what is claimed then is given back.
    """

    def __init__(
        self, databases: Databases, placement_client: PlacementClient, settings: SchedulerSettings,
        unwanted: Callable[[Sequence[str]], Iterable[str]] = lambda _servers: (),
    ) -> None:  # fmt: skip
        self._settings, self._client, self._unwanted = settings, placement_client, unwanted
        self._store = HostStore(databases)
        self._groups = GroupClaims()
        self._pipeline = pipeline.build(settings, placement_client, self._store.find_hosts)
        self._down = liveness.down_after(settings.report_interval, settings.service_down_time)
        self.traces = Ring()

    def select_destinations(self, ctx: Context, asked: SelectDestinations) -> Destinations:
        """Find and claim hosts for these equal servers, all or none. NoValidHost, or what the claim raises."""
        if not asked.servers:
            return Destinations(())
        spec = asked.spec
        LOG.debug("Starting to schedule for instances: %s", asked.servers)
        if spec.group is None:
            return Destinations(self._decided(ctx, asked))
        with self._groups.turn(spec.group.uuid):
            return Destinations(self._decided(ctx, asked))

    def _decided(self, ctx: Context, asked: SelectDestinations) -> Selections:
        spec = asked.spec
        trace = Trace(ctx.request_id, asked.servers, spec)
        try:
            snapshot = self._store.snapshot()
            request = Request(
                spec, self._settings, snapshot, group=self._group(spec), hosts_of=self._store.hosts_of(_named(spec))
            )
            moment = Moment(self._store.consumed(), partial(liveness.is_up, now=clock.utcnow(), down_time=self._down))
            selections = pipeline.select_destinations(
                self._pipeline, request, asked.servers, moment, trace, alternates=asked.alternates
            )
        except BaseException as error:
            trace.failure = str(error) or type(error).__name__
            raise
        finally:
            self.traces.add(trace)
            LOG.debug("%s", trace)
        gone = list(self._unwanted(asked.servers))
        if gone:
            LOG.warning("Servers %s are gone while hosts were chosen for them", ", ".join(gone))
            give_back(self._client, gone)
        for server, host in trace.winners.items():
            LOG.info("Server %s goes to %s", server, host)
        self._store.note_claims([row[0].provider_uuid for row in selections], spec.flavor)
        if spec.group is not None:
            self._groups.note(spec.group.uuid, trace.winners)
        return selections

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
