"""owner_nova_filter: only providers that compute owns, once every compute service says so of its own.

A service that is older than `NEEDED` reports no such trait: while there is one, nothing is asked for.
"""

from __future__ import annotations

import logging
from typing import Final

from kilonova.scheduler.plugins import Additions, RequestFilter
from kilonova.scheduler.request import Request

LOG = logging.getLogger(__name__)

NEEDED: Final = 73
TRAIT: Final = "OWNER_NOVA"
_ADDITIONS = Additions(required=frozenset({TRAIT}))


def _apply(request: Request) -> Additions | None:
    lowest = request.around.lowest_compute
    if lowest is None:
        return None
    if lowest < NEEDED:
        LOG.warning(
            "request filter owner_nova_filter adds nothing: the lowest compute service version is %d, needed is %d",
            lowest, NEEDED,
        )  # fmt: skip
        return None
    LOG.debug("request filter owner_nova_filter added trait %s", TRAIT)
    return _ADDITIONS


REQUEST_FILTER = RequestFilter("owner_nova_filter", lambda _settings: True, _apply)
