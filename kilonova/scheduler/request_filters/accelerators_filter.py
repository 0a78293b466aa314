"""accelerators_filter: a flavor with a device profile goes where accelerators are managed."""

from __future__ import annotations

import logging

from kilonova.scheduler.plugins import Additions, RequestFilter
from kilonova.scheduler.request import Request

LOG = logging.getLogger(__name__)

_TRAIT = "COMPUTE_ACCELERATORS"


def _apply(request: Request) -> Additions | None:
    spec = request.spec
    if not spec.flavor.extra_specs.get("accel:device_profile"):
        return None
    LOG.debug("request filter accelerators_filter added trait %s", _TRAIT)
    return Additions(required=frozenset({_TRAIT}))


REQUEST_FILTER = RequestFilter("accelerators_filter", lambda _settings: True, _apply)
