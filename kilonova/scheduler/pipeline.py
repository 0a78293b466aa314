"""The table of contents of a scheduling decision. The order of the stages never changes:

    request filters → candidates → host states → filters → weighers → claim → alternates

Everything but `claim` is a function over values. It must not know databases, the bus or the configuration file: the
service hands it a snapshot, settings and a Placement client, and gets selections or an error, and a trace in any case.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice

from kilonova.core import clock
from kilonova.core.request_spec import Selection
from kilonova.scheduler import registry
from kilonova.scheduler.candidates import VERSION, Candidates
from kilonova.scheduler.claim import PlacementClient, claim_first, give_back
from kilonova.scheduler.host_state import Consumed, HostState, Snapshot, consume, names, states_of
from kilonova.scheduler.plugins import Additions, Filter, Weigher
from kilonova.scheduler.request import Request
from kilonova.scheduler.resource_request import UNLIMITED_HINTS, to_query
from kilonova.scheduler.settings import SchedulerSettings
from kilonova.scheduler.stages import (
    destination_cell,
    narrow,
    no_valid_host,
    pick_order,
    pin_destination,
    run_filters,
    target_nodes,
    wanted_host,
)
from kilonova.scheduler.trace import SCORES, Trace
from kilonova.scheduler.weighing import Floats, Ranking

LOG = logging.getLogger(__name__)

Selections = tuple[tuple[Selection, ...], ...]


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
    with _timed(trace, "request filters"):
        additions = _request_filters(request, trace)
    with _timed(trace, "candidates"):
        request, candidates = _candidates(pipeline, request, additions, trace)
    with _timed(trace, "host states"):
        states = _host_states(request, candidates, moment, trace)
    round_ = Round(pipeline, request, states, candidates, trace)
    claimed: list[str] = []
    try:
        for server in servers:
            if not round_.place(server):
                raise no_valid_host(trace, len(servers), len(claimed))
            claimed.append(server)
    except BaseException:
        if claimed:
            LOG.debug("There are %d hosts available but %d requested", len(claimed), len(servers))
        give_back(pipeline.client, claimed)
        raise
    with _timed(trace, "alternates"):
        return round_.selections(servers, alternates=alternates)


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


class Round:
    """One request's servers being placed, one after the other. Hosts are named by their index in `states`."""

    def __init__(
        self, pipeline: Pipeline, request: Request, states: list[HostState], candidates: Candidates, trace: Trace
    ) -> None:
        self._pipeline = pipeline
        self._request = request
        self._states = states
        self._candidates = candidates
        self._trace = trace
        self._ranking: Ranking | None = None
        self._winners: dict[str, int] = {}
        self._refused: set[int] = set()
        self._skip_filters = False
        self._order: list[int] = list(range(len(states)))

    def place(self, server: str) -> bool:
        """Filter, weigh and claim for one server; False when it finds no host."""
        trace, request = self._trace, self._request.placing(server)
        with _timed(trace, "filters"):
            alive = self._filtered(request)
        if not alive:
            return False
        with _timed(trace, "weighers"):
            self._order = self._ranked(request, alive)
        with _timed(trace, "claim"):
            index = self._claimed(request, server)
        if index is None:
            return False
        self._consume(server, index)
        return True

    def _claimed(self, request: Request, server: str) -> int | None:
        """The claimed host. One that was refused to an equal server before is tried again only after all others."""
        order = sorted(self._order, key=self._refused.__contains__) if self._refused else self._order
        tried = len(self._trace.attempts)
        index = claim_first(
            self._pipeline.client, request.spec, server, order, self._states, self._candidates, self._trace.attempts
        )
        self._refused.update(attempt.index for attempt in self._trace.attempts[tried:] if not attempt.taken)
        return index

    def _filtered(self, request: Request) -> list[int]:
        """Every filter for the first server; for the others those that are not once a request, over the last order."""
        alive = self._order
        if not self._winners:
            alive, self._skip_filters = narrow(request, self._states, alive, self._trace)
        if self._skip_filters:
            return alive
        filters = self._pipeline.filters
        if self._winners:
            filters = tuple(row for row in filters if not row.once)
        alive = run_filters(filters, request, self._states, alive, self._trace)
        if LOG.isEnabledFor(logging.DEBUG):
            LOG.debug("Filtered %s", names(self._states[index] for index in alive))
        return alive

    def _ranked(self, request: Request, alive: list[int]) -> list[int]:
        if self._ranking is None:
            self._ranking = Ranking(self._pipeline.weighers, request, self._states)
        scores, parts = self._ranking.scores(alive)
        order = pick_order(alive, scores, request.settings)
        if not self._winners:
            self._note_scores(alive, scores, parts)
        return order

    def _note_scores(self, alive: list[int], scores: Floats, parts: Floats) -> None:
        ranking = self._ranking
        if ranking is None:
            return
        self._trace.weighers = tuple(row.name for row in ranking.weighers)
        best = (-scores).argsort(kind="stable")[:SCORES].tolist()
        self._trace.scores = [
            (self._states[alive[place]].host, float(scores[place]), tuple(parts[:, place].tolist())) for place in best
        ]
        if LOG.isEnabledFor(logging.DEBUG):
            for number, row in enumerate(ranking.weighers):
                LOG.debug("%s: multiplied and normalised %s", row.name, parts[number, :SCORES].tolist())
            weighed = [f"WeighedHost [host: {host}, weight: {total}]" for host, total, _ in self._trace.scores]
            LOG.debug("Weighed %s", weighed)

    def _consume(self, server: str, index: int) -> None:
        state = self._states[index]
        LOG.debug(
            "Selected host: (%s, %s) ram: %dMB disk: %dMB io_ops: %d instances: %d",
            state.host, state.node, state.free_ram_mb, state.free_disk_mb, state.num_io_ops, state.num_instances,
        )  # fmt: skip
        self._winners[server] = index
        self._trace.winners[server] = state.host
        self._states[index] = consume(state, self._request.spec.flavor)
        self._request = self._request.placed(server, state.host)
        if self._ranking is not None:
            self._ranking.update(self._request, index, self._states[index])

    def selections(self, servers: Sequence[str], *, alternates: bool) -> Selections:
        """The winner of each server and, in the same cell, up to `max_attempts` - 1 hosts that won nothing."""
        wanted = self._request.settings.max_attempts - 1 if alternates else 0
        spare = self._spare(servers[-1]) if wanted > 0 else []
        by_cell: dict[str, tuple[Selection, ...]] = {}
        found = []
        for server in servers:
            winner = self._selection(self._winners[server])
            cell = winner.cell_uuid
            if cell not in by_cell:
                near = (index for index in spare if self._states[index].cell_uuid == cell)
                by_cell[cell] = tuple(self._selection(index) for index in islice(near, wanted))
            found.append((winner, *by_cell[cell]))
        self._trace.alternates = tuple(dict.fromkeys(row.host for rows in found for row in rows[1:]))
        return tuple(found)

    def _spare(self, last: str) -> list[int]:
        """Hosts that won nothing and can be claimed, best first; of several servers, judged again after the last."""
        order = self._order
        if len(self._winners) > 1:
            order = self._ranked(self._request, self._filtered(self._request.placing(last)))
        winners = frozenset(self._winners.values())
        return [index for index in order if index not in winners and self._states[index].uuid in self._candidates]

    def _selection(self, index: int) -> Selection:
        state = self._states[index]
        zones = state.metadata("availability_zone")
        return Selection(
            host=state.host,
            node=state.node,
            provider_uuid=state.uuid,
            cell_uuid=state.cell_uuid,
            allocation_request=self._candidates.request(state.uuid),
            allocation_request_version=VERSION,
            availability_zone=min(zones) if zones else self._request.settings.default_availability_zone,
        )


@contextmanager
def _timed(trace: Trace, stage: str) -> Iterator[None]:
    started = clock.monotonic()
    try:
        yield
    finally:
        trace.seconds[stage] = trace.seconds.get(stage, 0.0) + clock.monotonic() - started
