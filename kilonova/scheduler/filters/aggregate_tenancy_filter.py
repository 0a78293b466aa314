"""AggregateMultiTenancyIsolation and NectarAggregateMultiTenancyIsolation: hosts that are kept for some projects.

The first reads every metadata key that begins with `filter_tenant_id`, the second the key `nectar:filter_tenant_id`;
values are comma lists of project ids. A host without any is open to all.
"""

from __future__ import annotations

from collections.abc import Iterable

from kilonova.scheduler.aggregate_values import by_aggregates
from kilonova.scheduler.host_state import HostState
from kilonova.scheduler.plugins import Check, Filter
from kilonova.scheduler.request import Request
from kilonova.scheduler.verdict import PASS, Verdict, fail

_PREFIX = "filter_tenant_id"
_NECTAR = "nectar:filter_tenant_id"


def _prepare(request: Request, keys: Iterable[str]) -> Check | None:
    keys = tuple(keys)
    if not keys:
        return None
    project = request.spec.project_id

    @by_aggregates
    def check(state: HostState) -> Verdict:
        owners = {project for key in keys for project in state.merged_metadata(key)}
        if not owners or project in owners:
            return PASS
        return fail("it is kept for {} other projects", len(owners))

    return check


FILTER = Filter(
    "AggregateMultiTenancyIsolation",
    lambda request: _prepare(request, (key for key in request.snapshot.aggregates.keys if key.startswith(_PREFIX))),
)
NECTAR = Filter(
    "NectarAggregateMultiTenancyIsolation",
    lambda request: _prepare(request, {_NECTAR} & request.snapshot.aggregates.keys),
)
