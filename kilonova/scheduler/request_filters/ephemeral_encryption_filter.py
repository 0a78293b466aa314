"""ephemeral_encryption_filter: a guest with encrypted local disks goes where they can be, in the format asked for."""

from __future__ import annotations

import logging

from kilonova.scheduler.guest_features import setting, wants
from kilonova.scheduler.plugins import Additions, RequestFilter
from kilonova.scheduler.request import Request

LOG = logging.getLogger(__name__)

_TRAIT = "COMPUTE_EPHEMERAL_ENCRYPTION"


def _apply(request: Request) -> Additions | None:
    spec = request.spec
    if not wants(spec, "hw:ephemeral_encryption"):
        LOG.debug("request filter ephemeral_encryption_filter skipped")
        return None
    form = setting(spec, "hw:ephemeral_encryption_format")
    traits = frozenset({_TRAIT, f"{_TRAIT}_{form.upper()}"} if form else {_TRAIT})
    LOG.debug("request filter ephemeral_encryption_filter added traits %s", sorted(traits))
    return Additions(required=traits)


REQUEST_FILTER = RequestFilter("ephemeral_encryption_filter", lambda _settings: True, _apply)
