"""RestrictedZoneFilter: a project that is kept to some zones stays in them when the request names none.

Which they are the project's attribute `compute_zones` says; one without it, or with `ALL`, is free. A host in no zone
is in the default one. Off until `[DEFAULT]restrict_zones`.
"""

from __future__ import annotations

import logging

from kilonova.scheduler.host_state import HostState
from kilonova.scheduler.plugins import Check, Filter
from kilonova.scheduler.request import Request
from kilonova.scheduler.verdict import PASS, Verdict, fail

LOG = logging.getLogger(__name__)


def _prepare(request: Request) -> Check | None:
    allowed = request.around.compute_zones
    if request.spec.availability_zone or not request.settings.restrict_zones or not allowed:
        return None
    default = frozenset({request.settings.default_availability_zone})

    def check(state: HostState) -> Verdict:
        zones = state.merged_metadata("availability_zone") or default
        if allowed & zones:
            return PASS
        LOG.debug("%s is in the zones %s, the project is kept to %s", state.host, sorted(zones), sorted(allowed))
        return fail("it is in {}, the project is kept to {}", ", ".join(sorted(zones)), ", ".join(sorted(allowed)))

    return check


FILTER = Filter("RestrictedZoneFilter", _prepare)
