"""AggregateInstanceExtraSpecsFilter: what the flavor's extra specs say of the host's aggregates holds.

Keys without a scope and keys `aggregate_instance_extra_specs:<key>` count; each needs at least one of the merged
metadata values (operators: `scheduler.operators`). It confines flavors; it keeps no other flavor out.
"""

from __future__ import annotations

from kilonova.scheduler.aggregate_values import by_aggregates
from kilonova.scheduler.host_state import HostState
from kilonova.scheduler.operators import Test, compile_requirement
from kilonova.scheduler.plugins import Check, Filter
from kilonova.scheduler.request import Request
from kilonova.scheduler.verdict import PASS, Verdict, fail

_SCOPE = "aggregate_instance_extra_specs"


def _prepare(request: Request) -> Check | None:
    wanted: list[tuple[str, Test, str]] = []
    for key, text in request.spec.flavor.extra_specs.items():
        scope, colon, rest = key.partition(":")
        if not colon or scope == _SCOPE:
            wanted.append((rest if colon else key, compile_requirement(text), text))
    if not wanted:
        return None

    @by_aggregates
    def check(state: HostState) -> Verdict:
        for key, test, text in wanted:
            values = state.merged_metadata(key)
            if not any(test(value) for value in values):
                return fail("its aggregates have {} = {}, wanted {}", key, ", ".join(sorted(values)) or "nothing", text)
        return PASS

    return check


FILTER = Filter("AggregateInstanceExtraSpecsFilter", _prepare)
