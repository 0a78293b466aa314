"""require_image_type_support: the host can boot the image's disk format."""

from __future__ import annotations

import logging

from kilonova.scheduler.plugins import Additions, RequestFilter
from kilonova.scheduler.request import Request

LOG = logging.getLogger(__name__)


def _apply(request: Request) -> Additions | None:
    spec = request.spec
    if spec.is_bfv or not spec.image.disk_format:
        return None
    import os_traits  # 20 ms, and this filter is off by default

    trait = f"COMPUTE_IMAGE_TYPE_{spec.image.disk_format.upper()}"
    if trait not in os_traits.get_traits("COMPUTE_IMAGE_TYPE_"):
        LOG.error("No trait exists for the disk format %s: not asked for", spec.image.disk_format)
        return None
    LOG.debug("request filter require_image_type_support added trait %s", trait)
    return Additions(required=frozenset({trait}))


REQUEST_FILTER = RequestFilter(
    "require_image_type_support", lambda settings: settings.query_placement_for_image_type_support, _apply
)
