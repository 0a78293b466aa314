"""virtio_sound_filter: a guest with a virtio sound device goes where there is one."""

from __future__ import annotations

import logging

from kilonova.scheduler.guest_features import setting
from kilonova.scheduler.plugins import Additions, RequestFilter
from kilonova.scheduler.request import Request

LOG = logging.getLogger(__name__)

_TRAIT = "COMPUTE_SOUND_MODEL_VIRTIO"


def _apply(request: Request) -> Additions | None:
    spec = request.spec
    if setting(spec, "hw:sound_model") != "virtio":
        return None
    LOG.debug("request filter virtio_sound_filter added trait %s", _TRAIT)
    return Additions(required=frozenset({_TRAIT}))


REQUEST_FILTER = RequestFilter("virtio_sound_filter", lambda _settings: True, _apply)
