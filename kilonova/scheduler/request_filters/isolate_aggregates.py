"""isolate_aggregates: aggregates that are kept for a trait (`trait:T=required`) take only requests that require it."""

from __future__ import annotations

import logging

from kilonova.scheduler.plugins import Additions, RequestFilter
from kilonova.scheduler.request import Request
from kilonova.scheduler.resource_request import requested_traits

LOG = logging.getLogger(__name__)

_PREFIX = "trait:"


def _apply(request: Request) -> Additions | None:
    spec, snapshot = request.spec, request.snapshot
    wanted = requested_traits(spec)
    forbidden = frozenset(
        row.uuid
        for row in snapshot.aggregates.rows
        if any(
            value == "required" and key.startswith(_PREFIX) and key.removeprefix(_PREFIX) not in wanted
            for key, value in row.metadata.items()
        )
    )
    if not forbidden:
        return None
    LOG.debug("request filter isolate_aggregates added forbidden aggregates %s", sorted(forbidden))
    return Additions(forbidden_aggregates=forbidden)


REQUEST_FILTER = RequestFilter(
    "isolate_aggregates", lambda settings: settings.enable_isolated_aggregate_filtering, _apply
)
