"""The pure stages of the pipeline between Placement's answer and the claim: targets, filters, picking.

Functions over values; nothing here reads a database, asks a service or writes.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from msgspec.structs import replace

from kilonova.core import ids
from kilonova.core.request_spec import Destination, RequestSpec
from kilonova.core.scheduling import NoValidHost
from kilonova.db.queries.host_states import HostRow
from kilonova.scheduler.blame import blamed
from kilonova.scheduler.host_state import HostState, Snapshot, names
from kilonova.scheduler.narration import explanation
from kilonova.scheduler.plugins import Check, Filter
from kilonova.scheduler.request import Request
from kilonova.scheduler.settings import SchedulerSettings
from kilonova.scheduler.trace import FilterResult, Trace
from kilonova.scheduler.verdict import PASS, Verdict
from kilonova.scheduler.weighing import Floats, ordered

LOG = logging.getLogger(__name__)


def wanted_host(spec: RequestSpec) -> tuple[str | None, str | None, str | None]:
    """(host, node, cell) that the request names, by destination or by force; each None when it does not."""
    destination = spec.requested_destination or Destination()
    host = destination.host or (spec.force_hosts[0] if spec.force_hosts else None)
    node = destination.node or (spec.force_nodes[0] if spec.force_nodes else None)
    return host, node, destination_cell(spec)


def destination_cell(spec: RequestSpec) -> str | None:
    """The only cell the request may go to; None when any will do."""
    destination = spec.requested_destination
    return None if destination is None or destination.allow_cross_cell_move else destination.cell


def target_nodes(spec: RequestSpec, snapshot: Snapshot) -> list[HostRow]:
    """The hypervisors the request names: empty when it names none. NoValidHost when it names one that is not there."""
    host, node, cell = wanted_host(spec)
    if host is None and node is None:
        return []
    found = snapshot.nodes(host, node, cell)
    if not found:
        raise NoValidHost(reason=f"No such host - host: {host} node: {node}.")
    return found


def pin_destination(spec: RequestSpec, node: HostRow) -> RequestSpec:
    """The spec with the one hypervisor that was found for it in its destination; forced hosts stay as they are."""
    destination = spec.requested_destination
    if destination is None or not (destination.host or destination.node):
        return spec
    return replace(spec, requested_destination=replace(destination, host=node.host, node=node.node))


def narrow(request: Request, states: Sequence[HostState], alive: list[int], trace: Trace) -> tuple[list[int], bool]:
    """What stays by name, before any filter: (indices, whether filters are skipped because the host is forced).

    Order: requested destination, hosts to ignore, forced hosts, forced nodes.
    """
    spec = request.spec
    alive = _only_destination(spec, states, alive, trace)
    if spec.ignore_hosts and alive:
        ignored = {host.lower() for host in spec.ignore_hosts}
        kept = [index for index in alive if states[index].host.lower() not in ignored]
        LOG.info("Host filter ignoring hosts: %s", ", ".join(spec.ignore_hosts))
        alive = _narrowed("ignore_hosts", "the request excludes it", states, alive, kept, trace)
    if spec.force_hosts and alive:
        forced = {host.lower() for host in spec.force_hosts}
        kept = [index for index in alive if states[index].host.lower() in forced]
        _log_forced("hosts", spec.force_hosts, states, kept)
        alive = _narrowed("force_hosts", "another host is forced", states, alive, kept, trace)
    if spec.force_nodes and alive:
        kept = [index for index in alive if states[index].node in spec.force_nodes]
        _log_forced("nodes", spec.force_nodes, states, kept)
        alive = _narrowed("force_nodes", "another node is forced", states, alive, kept, trace)
    return alive, bool(spec.force_hosts or spec.force_nodes)


def _only_destination(spec: RequestSpec, states: Sequence[HostState], alive: list[int], trace: Trace) -> list[int]:
    destination = spec.requested_destination
    if destination is None or not (destination.host or destination.node):
        return alive
    host, node = (destination.host or "").lower(), destination.node
    kept = [
        index
        for index in alive
        if (not host or states[index].host.lower() == host) and (not node or states[index].node == node)
    ]
    if kept:
        LOG.info("Host filter only checking host %s and node %s", destination.host, node)
    else:
        LOG.info("No hosts matched due to not matching requested destination (%s, %s)", destination.host, node)
    return _narrowed("requested_destination", "another host is asked for", states, alive, kept, trace)


def _log_forced(what: str, wanted: Sequence[str], states: Sequence[HostState], kept: Sequence[int]) -> None:
    if kept:
        LOG.info("Host filter forcing available hosts to %s", names(states[index] for index in kept))
    else:
        LOG.info("No hosts matched due to not matching 'force_%s' value of '%s'", what, ", ".join(wanted))


def _narrowed(
    name: str, reason: str, states: Sequence[HostState], before: Sequence[int], kept: list[int], trace: Trace
) -> list[int]:
    result = FilterResult(name, len(before), len(kept))
    trace.filters.append(result)
    if len(kept) < len(before):
        verdict = Verdict(False, reason)
        keep = frozenset(kept)
        trace.drop(result, ((index, states[index].host, verdict) for index in before if index not in keep))
    return kept


def run_filters(
    filters: Sequence[Filter], request: Request, states: Sequence[HostState], alive: list[int], trace: Trace
) -> list[int]:
    """The hosts that pass every filter, in their order. The first filter that leaves none ends the chain."""
    if not alive:
        return alive
    start = len(trace.filters)
    for row in filters:
        before = len(alive)
        result = FilterResult(row.name, before, before)
        trace.filters.append(result)
        with blamed("Filter", row.name):
            check = row.prepare(request)
            if check is not None:
                alive = _run_filter(check, result, states, alive, trace)
        result.after = len(alive)
        _log_filter(row.name, request, states, alive)
        if not alive:
            break
    if not alive:
        LOG.info(
            "Filtering removed all hosts for the request with instance ID '%s'. Filter results: %s",
            request.server,
            [f"{row.name}: (start: {row.before}, end: {row.after})" for row in trace.filters[start:]],
        )
    return alive


def _log_filter(name: str, request: Request, states: Sequence[HostState], alive: Sequence[int]) -> None:
    if not LOG.isEnabledFor(logging.INFO):
        return
    if not alive:
        LOG.info("[instance: %s] Filter %s returned 0 hosts", request.server, name)
        return
    most = request.settings.log_hosts
    shown = ", ".join(states[index].host for index in alive[:most])
    more = len(alive) - most
    text = f"{shown} … and {more} more" if more > 0 else shown
    LOG.info("[instance: %s] Filter %s returned %d hosts [%s]", request.server, name, len(alive), text)


def _run_filter(
    check: Check, result: FilterResult, states: Sequence[HostState], alive: list[int], trace: Trace
) -> list[int]:
    kept, dropped = [], []
    for index in alive:
        state = states[index]
        verdict = check(state)
        if verdict is PASS or verdict.passed:
            kept.append(index)
        else:
            dropped.append((index, state.row.host, verdict))
    if not dropped:
        return alive
    trace.drop(result, dropped)
    return kept


def pick_order(alive: list[int], scores: Floats, settings: SchedulerSettings) -> list[int]:
    """The hosts in the order in which they are tried: by score, then one drawn from the first `host_subset_size`
    comes first. With `shuffle_best_same_weighed_hosts` those that tie with the best are shuffled before.
    """
    order = ordered(alive, scores)
    if settings.shuffle_best_same_weighed_hosts and len(order) > 1:
        best = float(scores.max())
        tied = int((scores == best).sum())
        order[:tied] = ids.shuffled(order[:tied])
    size = min(settings.host_subset_size, len(order))
    if size > 1:
        first = ids.choice(range(size))
        order.insert(0, order.pop(first))
    return order


def no_valid_host(trace: Trace, wanted: int, got: int) -> NoValidHost:
    """The error; its `explanation` says in short where the hosts went, for those who may know."""
    return NoValidHost(reason="There are not enough hosts available.", explanation=explanation(trace, wanted, got))
