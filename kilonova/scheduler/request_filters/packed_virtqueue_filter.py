"""packed_virtqueue_filter: a guest with packed virtqueues goes where they are known."""

from __future__ import annotations

import logging

from kilonova.core.scheduling import RequestFilterFailed
from kilonova.scheduler.guest_features import is_true, wants
from kilonova.scheduler.plugins import Additions, RequestFilter
from kilonova.scheduler.request import Request

LOG = logging.getLogger(__name__)

_TRAIT = "COMPUTE_NET_VIRTIO_PACKED"


def _apply(request: Request) -> Additions | None:
    spec = request.spec
    by_flavor = spec.flavor.extra_specs.get("hw:virtio_packed_ring")
    by_image = spec.image.properties.get("hw_virtio_packed_ring")
    if by_flavor is not None and by_image is not None and is_true(by_flavor) != is_true(by_image):
        raise RequestFilterFailed(
            reason=f"The flavor's hw:virtio_packed_ring is {by_flavor}, the image's hw_virtio_packed_ring {by_image}."
        )
    if not wants(spec, "hw:virtio_packed_ring"):
        return None
    LOG.debug("request filter packed_virtqueue_filter added trait %s", _TRAIT)
    return Additions(required=frozenset({_TRAIT}))


REQUEST_FILTER = RequestFilter("packed_virtqueue_filter", lambda _settings: True, _apply)
