"""compute_status_filter: hosts whose compute service is disabled are left out by Placement. It cannot be turned off."""

from __future__ import annotations

import logging

from kilonova.scheduler.plugins import Additions, RequestFilter
from kilonova.scheduler.request import Request

LOG = logging.getLogger(__name__)

DISABLED = "COMPUTE_STATUS_DISABLED"
_ADDITIONS = Additions(forbidden=frozenset({DISABLED}))


def _apply(_request: Request) -> Additions | None:
    LOG.debug("request filter compute_status_filter added forbidden trait %s", DISABLED)
    return _ADDITIONS


REQUEST_FILTER = RequestFilter("compute_status_filter", lambda _settings: True, _apply)
