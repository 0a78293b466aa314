"""One scheduling request as filters and weighers see it: the spec, the settings, the hosts of the group, the image.

Pure values; what it holds is computed once a request and never per host.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from kilonova.core.request_spec import RequestSpec
from kilonova.scheduler.host_state import Snapshot
from kilonova.scheduler.settings import SchedulerSettings

_LEGACY = {
    "hw_architecture": "architecture",
    "hw_vm_mode": "vm_mode",
    "img_hv_type": "hypervisor_type",
    "img_hv_requested_version": "hypervisor_version_requires",
}
"""Image properties that had another name once; the old one counts where the new one is absent."""


@dataclass(frozen=True, slots=True)
class Group:
    """The server group of the request. placed: member server to its host, as far as known.

    hosts: every host that has a member, also where which member is not known.
    """

    uuid: str
    policy: str
    max_server_per_host: int
    placed: Mapping[str, str]
    hosts: frozenset[str]
    count: Mapping[str, int] = field(default_factory=dict)

    def members_on(self, host: str) -> int:
        """How many members the host has."""
        return self.count.get(host) or int(host in self.hosts)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What others know of a request, asked before it is judged and only for plug-ins that are enabled.

    project_tags: of the caller's project. compute_zones: the zones its project is kept to; empty for no restriction.
    interfaces: per interface the aggregates whose hosts have its segment. bad_segment: a segment without an aggregate.
    lowest_compute: the lowest version of a compute service. alike: per host how many of its servers have which image
    property (name, value).
    """

    project_tags: frozenset[str] = frozenset()
    compute_zones: frozenset[str] = frozenset()
    interfaces: tuple[tuple[str, ...], ...] = ()
    bad_segment: str = ""
    lowest_compute: int | None = None
    alike: Mapping[str, Mapping[tuple[str, str], int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked, and what it is judged by. server: the one being placed, of several equal ones. hosts_of: where
    the servers are that hints name.
    """

    spec: RequestSpec
    settings: SchedulerSettings
    snapshot: Snapshot
    server: str = ""
    group: Group | None = None
    hosts_of: Mapping[str, str] = field(default_factory=dict)
    around: Surroundings = Surroundings()

    def image_property(self, name: str) -> Any:
        """An image property by its present name; None when the image does not set it."""
        properties = self.spec.image.properties
        value = properties.get(name)
        if value is None and name in _LEGACY:
            value = properties.get(_LEGACY[name])
        return value

    def placing(self, server: str) -> Request:
        """The same request, for the next server."""
        return replace(self, server=server)

    def placed(self, server: str, host: str) -> Request:
        """The request after this server got its host: its group knows."""
        if self.group is None:
            return self
        known = {**self.group.placed, server: host}
        return replace(self, group=group_of(self.spec, known))


def group_of(spec: RequestSpec, placed: Mapping[str, str]) -> Group | None:
    """The group of the spec with its members where they are; None without a group."""
    if spec.group is None:
        return None
    return Group(
        uuid=spec.group.uuid,
        policy=spec.group.policy,
        max_server_per_host=int(spec.group.rules.get("max_server_per_host", 1)),
        placed=placed,
        hosts=frozenset(spec.group.hosts) | frozenset(placed.values()),
        count=Counter(placed.values()),
    )
