"""ServerGroupSoftAffinityWeigher and ServerGroupSoftAntiAffinityWeigher: near or away from the group's members."""

from __future__ import annotations

from collections.abc import Sequence

from kilonova.scheduler.host_state import HostState
from kilonova.scheduler.plugins import Weigher
from kilonova.scheduler.request import Request


def _near(request: Request, states: Sequence[HostState]) -> Sequence[float] | None:
    group = request.group
    if group is None or group.policy != "soft-affinity":
        return None
    return [group.members_on(state.host) for state in states]


def _away(request: Request, states: Sequence[HostState]) -> Sequence[float] | None:
    group = request.group
    if group is None or group.policy != "soft-anti-affinity":
        return None
    return [-group.members_on(state.host) for state in states]


SOFT_AFFINITY = Weigher("ServerGroupSoftAffinityWeigher", _near, "soft_affinity_weight_multiplier")
SOFT_ANTI_AFFINITY = Weigher("ServerGroupSoftAntiAffinityWeigher", _away, "soft_anti_affinity_weight_multiplier")
