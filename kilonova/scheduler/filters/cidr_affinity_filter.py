"""SimpleCIDRAffinityFilter: hosts whose address is in the network that two hints describe."""

from __future__ import annotations

from ipaddress import ip_address, ip_network

from kilonova.core.scheduling import NoValidHost
from kilonova.scheduler.host_state import HostState
from kilonova.scheduler.plugins import Check, Filter
from kilonova.scheduler.request import Request
from kilonova.scheduler.verdict import PASS, Verdict, fail

_DEFAULT = "/24"


def _prepare(request: Request) -> Check | None:
    hints = request.spec.scheduler_hints
    near = (hints.get("build_near_host_ip") or [""])[0]
    if not near:
        return None
    size = (hints.get("cidr") or [_DEFAULT])[0]
    try:
        network = ip_network(f"{near}/{size.lstrip('/')}", strict=False)
    except ValueError:
        raise NoValidHost(reason=f"The hints name no network: {near} with {size}.") from None

    def check(state: HostState) -> Verdict:
        try:
            near_enough = ip_address(state.row.host_ip or "") in network
        except ValueError:  # none reported, or a name
            near_enough = False
        return PASS if near_enough else fail("its address {} is not in {}", state.row.host_ip, network)

    return check


FILTER = Filter("SimpleCIDRAffinityFilter", _prepare)
