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
    own, hosts, most = group.placed.get(request.server), group.hosts, group.max_server_per_host
    if not hosts and most > 0:
        return None

    def check(state: HostState) -> Verdict:
        host = state.row.host
        members = group.members_on(host) if host in hosts else 0
        if members < most or host == own:
            return PASS
        return fail("it has {} members of the group, at most {} are allowed", members, most)

    return check


FILTER = Filter("ServerGroupAntiAffinityFilter", _prepare, once=False)
