"""packed_virtqueue_filter: a guest with packed virtqueues goes where they are known."""

from __future__ import annotations

import logging

from kilonova.core.request_spec import RequestSpec
from kilonova.scheduler.guest_features import wants
from kilonova.scheduler.host_state import Snapshot
from kilonova.scheduler.plugins import Additions, RequestFilter
from kilonova.scheduler.settings import SchedulerSettings

LOG = logging.getLogger(__name__)

_TRAIT = "COMPUTE_NET_VIRTIO_PACKED"


def _apply(spec: RequestSpec, _snapshot: Snapshot, _settings: SchedulerSettings) -> Additions | None:
    if not wants(spec, "hw:virtio_packed_ring"):
        return None
    LOG.debug("request filter packed_virtqueue_filter added trait %s", _TRAIT)
    return Additions(required=frozenset({_TRAIT}))


REQUEST_FILTER = RequestFilter("packed_virtqueue_filter", lambda _settings: True, _apply)
