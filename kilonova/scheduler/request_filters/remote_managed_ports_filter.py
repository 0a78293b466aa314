"""remote_managed_ports_filter: a server with a port that a SmartNIC manages goes where such ports are."""

from __future__ import annotations

import logging

from kilonova.scheduler.plugins import Additions, RequestFilter
from kilonova.scheduler.request import Request

LOG = logging.getLogger(__name__)

_TRAIT = "COMPUTE_REMOTE_MANAGED_PORTS"


def _apply(request: Request) -> Additions | None:
    if not any(entry.get("vnic_type") == "remote-managed" for entry in request.spec.requested_networks):
        return None
    LOG.debug("request filter remote_managed_ports_filter added trait %s", _TRAIT)
    return Additions(required=frozenset({_TRAIT}))


REQUEST_FILTER = RequestFilter("remote_managed_ports_filter", lambda _settings: True, _apply)
