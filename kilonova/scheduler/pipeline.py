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

import msgspec

from kilonova.core import clock
from kilonova.core.request_spec import Selection
from kilonova.scheduler import group_policies, registry
from kilonova.scheduler.blame import blamed
from kilonova.scheduler.candidates import Candidates
from kilonova.scheduler.choices import Choices, View
from kilonova.scheduler.claim import Claims, PlacementClient
from kilonova.scheduler.host_state import Consumed, HostState, Snapshot, states_of
from kilonova.scheduler.placing import Placing, Selections
from kilonova.scheduler.plugins import Additions, Filter, RequestFilter, Weigher
from kilonova.scheduler.question import ask
from kilonova.scheduler.request import Request
from kilonova.scheduler.resource_request import UNLIMITED_HINTS
from kilonova.scheduler.settings import SchedulerSettings
from kilonova.scheduler.shortage import shortage
from kilonova.scheduler.stages import (
    destination_cell,
    no_valid_host,
    pin_destination,
    run_filters,
    target_nodes,
    wanted_host,
)
from kilonova.scheduler.topology import with_devices, with_offers
from kilonova.scheduler.trace import Trace

LOG = logging.getLogger(__name__)

TOGETHER = 100
"""Servers claimed by one request at most: a real Placement takes long over each."""


@dataclass(frozen=True, slots=True)
class Pipeline:
    """What all decisions share: the enabled plug-ins and the way to Placement.

    find_hosts: a snapshot in which these providers were looked for, used when an answer names unknown ones.
    """

    request_filters: tuple[RequestFilter, ...]
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
    return Pipeline(
        registry.enabled_request_filters(settings), registry.enabled_filters(settings),
        registry.enabled_weighers(settings), client, find_hosts,
    )  # fmt: skip


def select_destinations(
    pipeline: Pipeline,
    request: Request,
    servers: Sequence[str],
    moment: Moment,
    trace: Trace,
    *,
    choices: View | None = None,
    alternates: bool = True,
    moving: bool = False,
) -> Selections:
    """Hosts for all the servers, claimed, each followed by its alternates.

    choices: what other decisions choose meanwhile, None for a decision that is alone. moving: the servers may hold
    something already, which stays.
    NoValidHost when one of them finds none, and whatever the claim raises; then nothing stays claimed.
    """
    request, candidates, states = hosts_for(pipeline, request, moment, trace)
    claims, choices = Claims(pipeline.client, request.spec, beside=moving), choices or View(Choices())
    placing = Placing(pipeline.filters, pipeline.weighers, claims, choices, request, states, candidates, trace)
    try:
        _place(placing, servers, trace, together=not moving)
        with trace.timed("alternates"):
            return placing.selections(servers, alternates=alternates)
    except BaseException:
        claims.give_back()
        raise


def names_of(pipeline: Pipeline) -> frozenset[str]:
    """The names of the enabled filters and weighers."""
    return frozenset(row.name for row in pipeline.filters) | frozenset(row.name for row in pipeline.weighers)


def check_rebuild(pipeline: Pipeline, request: Request, server: str, moment: Moment, trace: Trace) -> Selections:
    """The forced host, if those filters that look at rebuilds let the server stay there with its new image.

    Placement is not asked and nothing is claimed. NoValidHost.
    """
    nodes = target_nodes(request.spec, request.snapshot)
    with trace.timed("host states"):
        states = states_of(request.snapshot, {node.uuid: {} for node in nodes}, moment.consumed, moment.is_fresh)
        trace.hosts, trace.dropped_by = tuple(state.host for state in states), bytearray(len(states))
    trace.next_round(server)
    trace.candidates = len(states)
    filters = [row for row in pipeline.filters if row.on_rebuild]
    with trace.timed("filters"):
        alive = run_filters(filters, request.placing(server), states, list(range(len(states))), trace)
    if not alive:
        raise no_valid_host(trace, 1, 0)
    state = states[alive[0]]
    trace.winners[server] = state.host
    return ((Selection(state.host, state.node, state.uuid, state.cell_uuid, allocation_request=""),),)


def _place(placing: Placing, servers: Sequence[str], trace: Trace, *, together: bool) -> None:
    """Claim a host for each, several at once where that goes. NoValidHost when one of them finds none."""
    for start in range(0, len(servers), TOGETHER):
        some = servers[start : start + TOGETHER]
        if together and len(some) > 1 and placing.place_together(some):
            continue
        for got, server in enumerate(some, start):
            if not placing.place(server):
                LOG.debug("There are %d hosts available but %d requested", got, len(servers))
                raise no_valid_host(trace, len(servers), got)


def hosts_for(
    pipeline: Pipeline, request: Request, moment: Moment, trace: Trace
) -> tuple[Request, Candidates, list[HostState]]:
    """The stages before filters: what Placement has, and the states of these hosts."""
    if _asks_for_devices(request):
        request = replace(request, spec=with_devices(request.spec))
    group_policies.check(request.group, names_of(pipeline))
    with trace.timed("request filters"):
        additions = _request_filters(pipeline, request, trace)
    with trace.timed("candidates"):
        request, candidates = _candidates(pipeline, request, additions, trace)
    with trace.timed("host states"):
        states = _host_states(request, candidates, moment, trace)
    return request, candidates, states


def _request_filters(pipeline: Pipeline, request: Request, trace: Trace) -> Additions:
    total = Additions()
    for row in pipeline.request_filters:
        if not row.enabled(request.settings):
            continue
        started = clock.monotonic()
        with blamed("Request filter", row.name):
            added = row.apply(request)
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
    trace.query, answer = ask(
        pipeline.client,
        spec,
        additions,
        request.settings,
        in_tree=targets[0].uuid if len(targets) == 1 else None,
        limit=None if unlimited else request.settings.max_placement_results,
    )
    if answer is None:
        raise no_valid_host(trace, 1, 0)
    if not answer.allocation_requests:
        LOG.info(
            "Got no allocation candidates from the Placement API. This could be due to insufficient resources or a "
            "temporary occurrence as compute nodes start up."
        )
        trace.shortage = shortage(trace.query, request.snapshot)
        raise no_valid_host(trace, 1, 0)
    try:
        candidates = Candidates(answer, every=_asks_for_devices(request))
    except msgspec.MsgspecError as error:
        LOG.error("Placement's answer to the query %s cannot be read: %s", trace.query, error)
        raise no_valid_host(trace, 1, 0) from error
    trace.candidates = len(answer.allocation_requests)
    if not candidates.usages.keys() <= snapshot.hosts.keys():
        unknown = [uuid for uuid in candidates.usages if uuid not in snapshot.hosts]
        request = replace(request, snapshot=pipeline.find_hosts(snapshot, unknown))
    return request, candidates


def _asks_for_devices(request: Request) -> bool:
    """Whether Placement is asked for the request's PCI devices, too."""
    return request.settings.pci_in_placement and bool(request.spec.pci_requests)


def _host_states(request: Request, candidates: Candidates, moment: Moment, trace: Trace) -> list[HostState]:
    states = states_of(request.snapshot, candidates.usages, moment.consumed, moment.is_fresh)
    if cell := destination_cell(request.spec):
        states = [state for state in states if state.cell_uuid == cell]
    if _asks_for_devices(request):
        states = with_offers(states, request.spec, candidates)
    trace.hosts = tuple([state.row.host for state in states])
    trace.dropped_by = bytearray(len(states))
    return states
