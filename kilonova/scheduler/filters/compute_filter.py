"""ComputeFilter: the compute service of the host is enabled and was heard from lately."""

from __future__ import annotations

import logging

from kilonova.scheduler.host_state import HostState
from kilonova.scheduler.plugins import Check, Filter
from kilonova.scheduler.request import Request
from kilonova.scheduler.verdict import PASS, Verdict, fail

LOG = logging.getLogger(__name__)


def _prepare(_request: Request) -> Check | None:
    return _check


def _check(state: HostState) -> Verdict:
    row = state.row
    if row.service_disabled:
        LOG.debug("%s is disabled, reason: %s", row.host, row.service_disabled_reason or "not given")
        return fail("its compute service is disabled ({})", row.service_disabled_reason or "no reason given")
    if not state.alive:
        LOG.warning("%s has not been heard from in a while", row.host)
        if row.forced_down:
            return fail("its compute service is forced down")
        return fail("its compute service was last heard from at {}", row.last_seen_up or "no time")
    return PASS


FILTER = Filter("ComputeFilter", _prepare)
