"""routed_networks_filter: hosts that have the segments of the requested networks, one requirement per interface.

Which aggregates those are was asked before (`scheduler.surroundings`): of a port with an address the segment of its
first subnet, else every segment of the network. A network without segments asks for nothing.
"""

from __future__ import annotations

import logging

from kilonova.core.scheduling import RequestFilterFailed
from kilonova.scheduler.plugins import Additions, RequestFilter
from kilonova.scheduler.request import Request

LOG = logging.getLogger(__name__)


def _apply(request: Request) -> Additions | None:
    around = request.around
    if around.bad_segment:
        raise RequestFilterFailed(reason=f"Segment {around.bad_segment} has no aggregate in Placement.")
    wanted = tuple(aggregates for aggregates in around.interfaces if aggregates)
    if not wanted:
        return None
    LOG.debug("request filter routed_networks_filter added aggregates %s", wanted)
    return Additions(aggregates=wanted)


REQUEST_FILTER = RequestFilter(
    "routed_networks_filter", lambda settings: settings.query_placement_for_routed_network_aggregates, _apply
)
