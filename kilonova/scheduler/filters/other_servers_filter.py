"""DifferentHostFilter and SameHostFilter: away from, or together with, servers that a hint names."""

from __future__ import annotations

from kilonova.scheduler.host_state import HostState
from kilonova.scheduler.plugins import Check, Filter
from kilonova.scheduler.request import Request
from kilonova.scheduler.verdict import PASS, Verdict, fail

AWAY, TOGETHER = "different_host", "same_host"


def _away(request: Request) -> Check | None:
    servers = request.spec.scheduler_hints.get(AWAY)
    if not servers:
        return None
    taken = {request.hosts_of[server]: server for server in servers if server in request.hosts_of}

    def check(state: HostState) -> Verdict:
        server = taken.get(state.host)
        return PASS if server is None else fail("server {} is on it", server)

    return check


def _together(request: Request) -> Check | None:
    servers = request.spec.scheduler_hints.get(TOGETHER)
    if not servers:
        return None
    wanted = {request.hosts_of[server] for server in servers if server in request.hosts_of}
    verdict = fail("none of the servers {} is on it", ", ".join(servers))
    return lambda state: PASS if state.host in wanted else verdict


DIFFERENT_HOST = Filter("DifferentHostFilter", _away)
SAME_HOST = Filter("SameHostFilter", _together)
