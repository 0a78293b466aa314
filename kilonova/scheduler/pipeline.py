"""The table of contents of a scheduling decision. The order of the stages never changes:

    request filters → candidates → host states → filters → weighers → claim → alternates

Everything but `claim` is a function over values. It must not know databases, the bus or the configuration file: the
service hands it a snapshot, settings and a Placement client, and gets selections or an error, and a trace in any case.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from kilonova.core import clock
from kilonova.scheduler import registry
from kilonova.scheduler.candidates import VERSION, Candidates
from kilonova.scheduler.claim import PlacementClient, give_back
from kilonova.scheduler.host_state import Consumed, HostState, Snapshot, states_of
from kilonova.scheduler.placing import Placing, Selections
from kilonova.scheduler.plugins import Additions, Filter, Weigher
from kilonova.scheduler.request import Request
from kilonova.scheduler.resource_request import UNLIMITED_HINTS, to_query
from kilonova.scheduler.settings import SchedulerSettings
from kilonova.scheduler.stages import (
    destination_cell,
    no_valid_host,
    pin_destination,
    target_nodes,
    wanted_host,
)
from kilonova.scheduler.trace import Trace

LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Pipeline:
    """What all decisions share: the enabled plug-ins and the way to Placement.

    find_hosts: a snapshot in which these providers were looked for, used when an answer names unknown ones.
    """

    filters: tuple[Filter, ...]
    weighers: tuple[Weigher, ...]
    client: PlacementClient
    find_hosts: Callable[[Snapshot, Iterable[str]], Snapshot]


@dataclass(frozen=True, slots=True)
class Moment:
    """What a decision takes as true besides the request: claims that rows do not show yet, and who counts as up."""

    consumed: Mapping[str, Consumed]
    is_fresh: Callable[[datetime | None], bool]


def build(
    settings: SchedulerSettings, client: PlacementClient, find_hosts: Callable[[Snapshot, Iterable[str]], Snapshot]
) -> Pipeline:
    """The pipeline that the settings describe. UnknownPlugin when they name a plug-in that does not exist."""
    return Pipeline(registry.enabled_filters(settings), registry.enabled_weighers(settings), client, find_hosts)


def select_destinations(
    pipeline: Pipeline,
    request: Request,
    servers: Sequence[str],
    moment: Moment,
    trace: Trace,
    *,
    alternates: bool = True,
) -> Selections:
    """Hosts for all the servers, claimed, each followed by its alternates.

    NoValidHost when one of them finds none, and whatever the claim raises; then nothing stays claimed.
    """
    with trace.timed("request filters"):
        additions = _request_filters(request, trace)
    with trace.timed("candidates"):
        request, candidates = _candidates(pipeline, request, additions, trace)
    with trace.timed("host states"):
        states = _host_states(request, candidates, moment, trace)
    placing = Placing(pipeline.filters, pipeline.weighers, pipeline.client, request, states, candidates, trace)
    claimed: list[str] = []
    try:
        for server in servers:
            if not placing.place(server):
                LOG.debug("There are %d hosts available but %d requested", len(claimed), len(servers))
                raise no_valid_host(trace, len(servers), len(claimed))
            claimed.append(server)
        with trace.timed("alternates"):
            return placing.selections(servers, alternates=alternates)
    except BaseException:
        give_back(pipeline.client, claimed)
        raise


def _request_filters(request: Request, trace: Trace) -> Additions:
    total = Additions()
    for row in registry.REQUEST_FILTERS:
        if not row.enabled(request.settings):
            continue
        started = clock.monotonic()
        added = row.apply(request.spec, request.snapshot, request.settings)
        if added is not None:
            total |= added
            trace.additions.append((row.name, added))
        LOG.debug("request filter %s took %.4f seconds", row.name, clock.monotonic() - started)
    return total


def _candidates(
    pipeline: Pipeline, request: Request, additions: Additions, trace: Trace
) -> tuple[Request, Candidates]:
    """Placement's answer, and the request with the snapshot that knows the hosts in it.

    An answer without allocation requests is NoValidHost.
    """
    spec, snapshot = request.spec, request.snapshot
    host, node, cell = wanted_host(spec)
    if (host or node) and not snapshot.nodes(host, node, cell):
        snapshot = pipeline.find_hosts(snapshot, ())
        request = replace(request, snapshot=snapshot)
    targets = target_nodes(spec, snapshot)
    if len(targets) == 1:
        request = replace(request, spec=pin_destination(spec, targets[0]))
    destination = spec.requested_destination
    if destination is not None:
        additions |= Additions(
            aggregates=destination.aggregates, forbidden_aggregates=frozenset(destination.forbidden_aggregates)
        )
    unlimited = len(targets) > 1 or spec.group or any(hint in spec.scheduler_hints for hint in UNLIMITED_HINTS)
    trace.query = to_query(
        spec,
        additions,
        in_tree=targets[0].uuid if len(targets) == 1 else None,
        limit=None if unlimited else request.settings.max_placement_results,
    )
    answer = pipeline.client.allocation_candidates(trace.query, VERSION)
    if answer is None or not answer.allocation_requests:
        LOG.info(
            "Got no allocation candidates from the Placement API. This could be due to insufficient resources or a "
            "temporary occurrence as compute nodes start up."
        )
        raise no_valid_host(trace, 1, 0)
    candidates = Candidates(answer)
    trace.candidates = len(answer.allocation_requests)
    unknown = [uuid for uuid in candidates.usages if uuid not in snapshot.hosts]
    if unknown:
        request = replace(request, snapshot=pipeline.find_hosts(snapshot, unknown))
    return request, candidates


def _host_states(request: Request, candidates: Candidates, moment: Moment, trace: Trace) -> list[HostState]:
    states = states_of(request.snapshot, candidates.usages, moment.consumed, moment.is_fresh)
    if cell := destination_cell(request.spec):
        states = [state for state in states if state.cell_uuid == cell]
    trace.hosts = tuple(state.host for state in states)
    trace.dropped_by = bytearray(len(states))
    return states
