"""AggregateTypeAffinityFilter: hosts whose aggregates list flavor names (`instance_type`) take only those flavors."""

from __future__ import annotations

from kilonova.scheduler.aggregate_values import by_aggregates
from kilonova.scheduler.host_state import HostState
from kilonova.scheduler.plugins import Check, Filter
from kilonova.scheduler.request import Request
from kilonova.scheduler.verdict import PASS, Verdict, fail

_KEY = "instance_type"


def _prepare(request: Request) -> Check | None:
    if _KEY not in request.snapshot.aggregates.keys:
        return None
    name = request.spec.flavor.name

    @by_aggregates
    def check(state: HostState) -> Verdict:
        allowed = state.merged_metadata(_KEY)
        if not allowed or name in allowed:
            return PASS
        return fail("its aggregates take only the flavors {}", ", ".join(sorted(allowed)))

    return check


FILTER = Filter("AggregateTypeAffinityFilter", _prepare)
