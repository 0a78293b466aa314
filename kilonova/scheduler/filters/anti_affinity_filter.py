"""ServerGroupAntiAffinityFilter: a host takes no more members of the group than its rule allows (default one)."""

from __future__ import annotations

from kilonova.scheduler.host_state import HostState
from kilonova.scheduler.plugins import Check, Filter
from kilonova.scheduler.request import Request
from kilonova.scheduler.verdict import PASS, Verdict, fail

POLICY = "anti-affinity"


def _prepare(request: Request) -> Check | None:
    group = request.group
    if group is None or group.policy != POLICY:
        return None
    own = group.placed.get(request.server)

    def check(state: HostState) -> Verdict:
        if state.host == own:
            return PASS
        members = group.members_on(state.host)
        if members < group.max_server_per_host:
            return PASS
        return fail("it has {} members of the group, at most {} are allowed", members, group.max_server_per_host)

    return check


FILTER = Filter("ServerGroupAntiAffinityFilter", _prepare, once=False)
