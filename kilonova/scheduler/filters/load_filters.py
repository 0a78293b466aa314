"""IoOpsFilter and NumInstancesFilter, and their forms in which a host's aggregates override the limit.

A host passes while its number is below the limit. The metadata key is the option's name; of several values the
smallest counts.
"""

from __future__ import annotations

from collections.abc import Callable

from kilonova.scheduler.aggregate_values import override
from kilonova.scheduler.host_state import HostState
from kilonova.scheduler.plugins import Check, Filter
from kilonova.scheduler.request import Request
from kilonova.scheduler.verdict import PASS, Verdict, fail


def _limit(
    option: str, number: Callable[[HostState], int], what: str, *, by_aggregate: bool
) -> Callable[[Request], Check]:
    def prepare(request: Request) -> Check:
        configured = int(getattr(request.settings, option))
        overridden = by_aggregate and option in request.snapshot.aggregates.keys

        def check(state: HostState) -> Verdict:
            limit = override(state, option, configured, int) if overridden else configured
            has = number(state)
            return PASS if has < limit else fail(f"it has {{}} {what}, the limit is {{}}", has, limit)

        return check

    return prepare


def _io_ops(state: HostState) -> int:
    return state.num_io_ops


def _servers(state: HostState) -> int:
    return state.num_instances


_IO, _COUNT = "max_io_ops_per_host", "max_instances_per_host"

IO_OPS = Filter("IoOpsFilter", _limit(_IO, _io_ops, "servers at work", by_aggregate=False), once=False)
NUM_INSTANCES = Filter("NumInstancesFilter", _limit(_COUNT, _servers, "servers", by_aggregate=False), once=False)
AGGREGATE_IO_OPS = Filter(
    "AggregateIoOpsFilter", _limit(_IO, _io_ops, "servers at work", by_aggregate=True), once=False
)
AGGREGATE_NUM_INSTANCES = Filter(
    "AggregateNumInstancesFilter", _limit(_COUNT, _servers, "servers", by_aggregate=True), once=False
)
