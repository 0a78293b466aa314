"""map_az_to_placement_aggregate: a requested availability zone becomes membership in one of its aggregates.

A zone without aggregates (the default zone) adds nothing: the API has checked that the zone exists.
"""

from __future__ import annotations

import logging

from kilonova.scheduler.plugins import Additions, RequestFilter
from kilonova.scheduler.request import Request

LOG = logging.getLogger(__name__)


def _apply(request: Request) -> Additions | None:
    spec, snapshot = request.spec, request.snapshot
    zone = spec.availability_zone
    if not zone:
        return None
    found = tuple(row.uuid for row in snapshot.aggregates.rows if row.metadata.get("availability_zone") == zone)
    if not found:
        return None
    LOG.debug("request filter map_az_to_placement_aggregate added aggregates %s for zone %s", found, zone)
    return Additions(aggregates=(found,))


REQUEST_FILTER = RequestFilter("map_az_to_placement_aggregate", lambda _settings: True, _apply)
