"""How many more servers of a kind fit: every host that passes the filters is filled in memory until it takes no more.

Placement says what room there is, as for a real request; filters that look at the load are asked after each server.
Servers at work (building, resizing) are not counted up meanwhile: that load passes. Hosts that share a provider are
filled one after the other, so the sum is right and a single host's part is not its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from msgspec.structs import replace as changed

from kilonova.core import json
from kilonova.core.capacity import Capacity, Limit, Share
from kilonova.core.scheduling import NoValidHost
from kilonova.scheduler.host_state import HostState, consume
from kilonova.scheduler.pipeline import Moment, Pipeline, hosts_for
from kilonova.scheduler.plugins import Filter
from kilonova.scheduler.request import Request
from kilonova.scheduler.simulation import DryPlacement, amounts
from kilonova.scheduler.stages import narrow, no_valid_host, run_filters
from kilonova.scheduler.topology import wanted_by
from kilonova.scheduler.trace import Trace

_ALL: Final = 1_000_000
_NOBODY: Final = "a server to come"


@dataclass(frozen=True, slots=True)
class _Filled:
    """A host, how many it took, and what keeps one more out."""

    state: HostState
    fits: int
    limit: str


def measure(live: Pipeline, request: Request, moment: Moment) -> Capacity:
    """The capacity for servers like the request's."""
    placement = DryPlacement(live.client)
    request = replace(request, settings=replace(request.settings, max_placement_results=_ALL), server=_NOBODY)
    trace = Trace(None, (_NOBODY,), request.spec)
    try:
        request, _, states = hosts_for(replace(live, client=placement), request, moment, trace)
        alive, forced = narrow(request, states, list(range(len(states))), trace)
        filters: Sequence[Filter] = () if forced else live.filters
        alive = run_filters(filters, request, states, alive, trace)
        if not alive:
            raise no_valid_host(trace, 1, 0)
    except NoValidHost as error:
        return Capacity(0, 0, explanation=str(error.details.get("explanation") or error.text))
    requests = _requests(placement)
    each = [row for row in filters if not row.once]
    filled = [_fill(states[index], requests.get(states[index].uuid, ()), placement, each, request) for index in alive]
    return _summed(filled, request.settings.default_availability_zone)


def _requests(placement: DryPlacement) -> Mapping[str, list[dict[str, Any]]]:
    """The allocation requests by root provider."""
    found: dict[str, list[dict[str, Any]]] = {}
    for answer in placement.answers:
        for raw in answer.allocation_requests:
            request = json.loads(bytes(raw))
            summaries = answer.provider_summaries
            roots = {summaries[uuid].root_provider_uuid or uuid for uuid in request["allocations"]}
            for root in roots:
                found.setdefault(root, []).append(request)
    return found


def _fill(
    state: HostState, requests: Sequence[dict[str, Any]], placement: DryPlacement, filters: Sequence[Filter],
    request: Request,
) -> _Filled:  # fmt: skip
    fits, limit, working, guest = 0, "", state.num_io_ops, wanted_by(request.spec)
    checks = [(row.name, check) for row in filters if (check := row.prepare(request)) is not None]
    for offered in requests:
        wanted = amounts(offered)
        while not (lacking := placement.lacking(wanted)):
            refusing = next((name for name, check in checks if not check(state).passed), "")
            if refusing:
                return _Filled(state, fits, refusing)
            placement.take(wanted)
            state = changed(consume(state, request.spec.flavor, guest), num_io_ops=working)
            fits += 1
        limit = lacking[0]
    return _Filled(state, fits, limit)


def _summed(filled: Sequence[_Filled], default_zone: str) -> Capacity:
    zones: dict[str, list[_Filled]] = {}
    aggregates: dict[str, list[_Filled]] = {}
    for row in filled:
        zone = min(row.state.metadata("availability_zone"), default=default_zone)
        zones.setdefault(zone, []).append(row)
        for aggregate in row.state.aggregates:
            aggregates.setdefault(aggregate.name, []).append(row)
    limits = Counter(row.limit for row in filled)
    return Capacity(
        fits=sum(row.fits for row in filled),
        hosts=sum(row.fits > 0 for row in filled),
        zones=_shares(zones),
        aggregates=_shares(aggregates),
        limits=tuple(Limit(name, hosts) for name, hosts in limits.most_common()),
    )


def _shares(parts: Mapping[str, Iterable[_Filled]]) -> tuple[Share, ...]:
    found = []
    for name, rows in sorted(parts.items()):
        rows = list(rows)
        first = Counter(row.limit for row in rows).most_common(1)[0][0]
        found.append(Share(name, sum(row.fits > 0 for row in rows), sum(row.fits for row in rows), first))
    return tuple(found)
