"""transform_image_metadata: image properties that name a device model or architecture become required traits.

One value without a trait, and none is added.
"""

from __future__ import annotations

import logging

from kilonova.scheduler.plugins import Additions, RequestFilter
from kilonova.scheduler.request import Request

LOG = logging.getLogger(__name__)

_PREFIXES = {
    "hw_cdrom_bus": "COMPUTE_STORAGE_BUS",
    "hw_disk_bus": "COMPUTE_STORAGE_BUS",
    "hw_video_model": "COMPUTE_GRAPHICS_MODEL",
    "hw_vif_model": "COMPUTE_NET_VIF_MODEL",
    "hw_architecture": "HW_ARCH",
    "hw_emulation_architecture": "COMPUTE_ARCH",
    "hw_viommu_model": "COMPUTE_VIOMMU",
}


def _apply(request: Request) -> Additions | None:
    spec = request.spec
    wanted = {
        f"{prefix}_{str(spec.image.properties[name]).replace('-', '_').upper()}"
        for name, prefix in _PREFIXES.items()
        if spec.image.properties.get(name)
    }
    if not wanted:
        return None
    import os_traits  # 20 ms, and this filter is off by default

    unknown = wanted - set(os_traits.get_traits())
    if unknown:
        LOG.error("No such traits: %s; none is added for the image's properties", sorted(unknown))
        return None
    LOG.debug("request filter transform_image_metadata added traits %s", sorted(wanted))
    return Additions(required=frozenset(wanted))


REQUEST_FILTER = RequestFilter(
    "transform_image_metadata", lambda settings: settings.image_metadata_prefilter, _apply
)
