"""AggregateImagePropertiesIsolation: an image property that contradicts the host's aggregates keeps the image away.

Looked at are metadata keys that are names of image properties, with a configured prefix only those that carry it. An
image that does not set the property passes.
"""

from __future__ import annotations

from kilonova.scheduler.host_state import HostState
from kilonova.scheduler.plugins import Check, Filter
from kilonova.scheduler.request import Request
from kilonova.scheduler.verdict import PASS, Verdict, fail

_FAMILIES = ("hw_", "img_", "os_")
"""Image properties that mean something to Compute begin so."""


def _prepare(request: Request) -> Check | None:
    settings = request.settings
    namespace = settings.aggregate_image_properties_isolation_namespace
    prefix = f"{namespace}{settings.aggregate_image_properties_isolation_separator}" if namespace else ""
    wanted: dict[str, str] = {}
    for key in request.snapshot.aggregates.keys:
        name = key.removeprefix(prefix)
        value = request.image_property(name) if key.startswith(prefix) and name.startswith(_FAMILIES) else None
        if value is not None:
            wanted[key] = str(value)
    if not wanted:
        return None

    def check(state: HostState) -> Verdict:
        for key, value in wanted.items():
            allowed = state.merged_metadata(key)
            if allowed and value not in allowed:
                return fail("its aggregates take {} = {}, the image has {}", key, sorted(allowed), value)
        return PASS

    return check


FILTER = Filter("AggregateImagePropertiesIsolation", _prepare, on_rebuild=True)
