"""accelerators_filter: a flavor with a device profile goes where accelerators are managed."""

from __future__ import annotations

import logging

from kilonova.core.request_spec import RequestSpec
from kilonova.scheduler.host_state import Snapshot
from kilonova.scheduler.plugins import Additions, RequestFilter
from kilonova.scheduler.settings import SchedulerSettings

LOG = logging.getLogger(__name__)

_TRAIT = "COMPUTE_ACCELERATORS"


def _apply(spec: RequestSpec, _snapshot: Snapshot, _settings: SchedulerSettings) -> Additions | None:
    if not spec.flavor.extra_specs.get("accel:device_profile"):
        return None
    LOG.debug("request filter accelerators_filter added trait %s", _TRAIT)
    return Additions(required=frozenset({_TRAIT}))


REQUEST_FILTER = RequestFilter("accelerators_filter", lambda _settings: True, _apply)
