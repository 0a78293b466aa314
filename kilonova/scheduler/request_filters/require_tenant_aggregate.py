"""require_tenant_aggregate: a project's servers go to the aggregates that name it, where there are any.

The metadata key begins with `filter_tenant_id` and its value is exactly the project's id: a list of ids never matches.
"""

from __future__ import annotations

import logging

from kilonova.core.scheduling import RequestFilterFailed
from kilonova.scheduler.plugins import Additions, RequestFilter
from kilonova.scheduler.request import Request

LOG = logging.getLogger(__name__)

_PREFIX = "filter_tenant_id"


def _apply(request: Request) -> Additions | None:
    spec, snapshot, settings = request.spec, request.snapshot, request.settings
    found = tuple(
        row.uuid
        for row in snapshot.aggregates.rows
        if any(value == spec.project_id and key.startswith(_PREFIX) for key, value in row.metadata.items())
    )
    if found:
        LOG.debug("request filter require_tenant_aggregate added aggregates %s for tenant %s", found, spec.project_id)
        return Additions(aggregates=(found,))
    if settings.placement_aggregate_required_for_tenants:
        LOG.warning("Placement aggregate is required for tenants and tenant %s has none", spec.project_id)
        raise RequestFilterFailed(reason=f"No aggregate is set up for project {spec.project_id}.")
    return None


REQUEST_FILTER = RequestFilter(
    "require_tenant_aggregate", lambda settings: settings.limit_tenants_to_placement_aggregate, _apply
)
