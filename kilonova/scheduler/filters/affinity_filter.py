"""ServerGroupAffinityFilter: the members of the group are on this host, or on none yet."""

from __future__ import annotations

from kilonova.scheduler.host_state import HostState
from kilonova.scheduler.plugins import Check, Filter
from kilonova.scheduler.request import Request
from kilonova.scheduler.verdict import PASS, Verdict, fail

POLICY = "affinity"


def _prepare(request: Request) -> Check | None:
    group = request.group
    if group is None or group.policy != POLICY or not group.hosts:
        return None

    def check(state: HostState) -> Verdict:
        if state.host in group.hosts:
            return PASS
        return fail("the members of the group are on {}", ", ".join(sorted(group.hosts)))

    return check


FILTER = Filter("ServerGroupAffinityFilter", _prepare, once=False)
