"""Which plug-in keeps which policy of server groups. Without it the policy would be a promise that nobody keeps."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Final

from kilonova.core.scheduling import UnsupportedPolicy
from kilonova.scheduler.request import Group

LOG = logging.getLogger(__name__)

KEEPERS: Final = {
    "affinity": ("enabled_filters", "ServerGroupAffinityFilter"),
    "anti-affinity": ("enabled_filters", "ServerGroupAntiAffinityFilter"),
    "soft-affinity": ("weight_classes", "ServerGroupSoftAffinityWeigher"),
    "soft-anti-affinity": ("weight_classes", "ServerGroupSoftAntiAffinityWeigher"),
}
"""Policy to the option that enables its plug-in, and the plug-in."""


def check(group: Group | None, enabled: Iterable[str]) -> None:
    """UnsupportedPolicy when the group's policy needs a plug-in that is not enabled."""
    if group is None or group.policy not in KEEPERS:
        return
    option, keeper = KEEPERS[group.policy]
    if keeper not in enabled:
        LOG.error("Server group %s has policy %s, but %s does not name %s", group.uuid, group.policy, option, keeper)
        raise UnsupportedPolicy(
            reason=f"Server group policy {group.policy} is not supported here: {option} does not name {keeper}."
        )
