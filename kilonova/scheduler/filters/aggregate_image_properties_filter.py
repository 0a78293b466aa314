"""AggregateImagePropertiesIsolation: an image property that contradicts the host's aggregates keeps the image away.

Looked at are metadata keys that are names of image properties known to compute, with a configured prefix only those
that carry it. An image that does not set the property passes.
"""

from __future__ import annotations

import logging

from kilonova.core.image_properties import PRESENT_NAMES
from kilonova.scheduler.aggregate_values import by_aggregates
from kilonova.scheduler.host_state import HostState
from kilonova.scheduler.plugins import Check, Filter
from kilonova.scheduler.request import Request
from kilonova.scheduler.verdict import PASS, Verdict, fail

LOG = logging.getLogger(__name__)


def _prepare(request: Request) -> Check | None:
    settings = request.settings
    namespace = settings.aggregate_image_properties_isolation_namespace
    prefix = f"{namespace}{settings.aggregate_image_properties_isolation_separator}" if namespace else ""
    if namespace:
        LOG.warning("aggregate_image_properties_isolation_namespace is deprecated: it goes with a later release")
    wanted: dict[str, str] = {}
    for key in request.snapshot.aggregates.keys:
        name = key.removeprefix(prefix)
        if not key.startswith(prefix):
            continue
        if name not in PRESENT_NAMES:
            if prefix:
                LOG.warning("The aggregates' %s is no property of images that compute knows; it isolates nothing", key)
            continue
        value = request.image_property(name)
        if value is not None:
            wanted[key] = str(value)
    if not wanted:
        return None

    @by_aggregates
    def check(state: HostState) -> Verdict:
        for key, value in wanted.items():
            allowed = state.merged_metadata(key)
            if allowed and value not in allowed:
                return fail("its aggregates take {} = {}, the image has {}", key, " or ".join(sorted(allowed)), value)
        return PASS

    return check


FILTER = Filter("AggregateImagePropertiesIsolation", _prepare, on_rebuild=True)
