"""What other services and tables know of a request, asked before it is judged, so that plug-ins stay pure.

Asked is only what an enabled plug-in reads. Images of servers are remembered for seconds, versions of compute services
until all are new enough.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from kilonova.clients.identity import compute_zones
from kilonova.core import clock
from kilonova.core.context import Context
from kilonova.core.errors import NotFound
from kilonova.core.request_spec import RequestSpec
from kilonova.core.scheduling import NoValidHost
from kilonova.db.queries import host_states, surroundings
from kilonova.scheduler.host_store import Databases, tolerated
from kilonova.scheduler.request import Surroundings
from kilonova.scheduler.request_filters.owner_nova_filter import NEEDED
from kilonova.scheduler.settings import SchedulerSettings

LOG = logging.getLogger(__name__)

IMAGES_FOR = 10.0
VERSIONS_FOR = 60.0
Doc = dict[str, Any]


class Identity(Protocol):
    """What is asked of the identity service: a project, None when there is no such one."""

    def project(self, project_id: str) -> Doc | None: ...


class Network(Protocol):
    """What is asked of the network service."""

    def show_port(self, port: str) -> Doc: ...

    def list_subnets(self, **filters: Any) -> list[Doc]: ...


class Aggregates(Protocol):
    """What is asked of Placement: a provider's aggregates and generation; NotFound."""

    def aggregates(self, uuid: str) -> tuple[list[str], int]: ...


@dataclass(frozen=True, slots=True)
class Others:
    """The services asked; None where there is none, which is an error only when a plug-in needs it."""

    identity: Identity | None = None
    network: Network | None = None
    placement: Aggregates | None = None


class Look:
    """Looks around for one scheduler. Safe from any thread."""

    def __init__(
        self, databases: Databases, others: Others, settings: SchedulerSettings, plugins: Iterable[str]
    ) -> None:  # fmt: skip
        names = frozenset(plugins)
        self._databases, self._others, self._settings = databases, others, settings
        self._tags = "ProjectTagsFilter" in names
        self._zones = settings.restrict_zones and "RestrictedZoneFilter" in names
        self._alike = "ImagePropertiesWeigher" in names and bool(settings.image_props_weight_multiplier)
        self._segments = settings.query_placement_for_routed_network_aggregates
        self._images: tuple[float, Mapping[str, Counter[tuple[str, str]]]] = (float("-inf"), {})
        self._lowest: tuple[float, int | None] = (float("-inf"), None)

    def around(self, ctx: Context, spec: RequestSpec) -> Surroundings:
        """What is to be known of this request. The project is the caller's, also when an administrator moves a server.

        NoValidHost when a project that hosts are kept by is not there; what the services' clients raise.
        """
        project = self._project(ctx.project_id or spec.project_id) if self._tags or self._zones else {}
        interfaces, bad = self._interfaces(spec) if self._segments else ((), "")
        return Surroundings(
            project_tags=frozenset(project.get("tags") or ()) if self._tags else frozenset(),
            compute_zones=compute_zones(project) if self._zones else frozenset(),
            interfaces=interfaces, bad_segment=bad,
            lowest_compute=self._lowest_compute(),
            alike=self._counted() if self._alike and spec.image.properties else {},
        )  # fmt: skip

    def _project(self, project_id: str) -> Doc:
        if self._others.identity is None:
            raise NoValidHost(reason="The scheduler knows no identity service, which its filters need.")
        found = self._others.identity.project(project_id)
        if found is None:
            raise NoValidHost(reason=f"The identity service has no project {project_id}.")
        return found

    def _interfaces(self, spec: RequestSpec) -> tuple[tuple[tuple[str, ...], ...], str]:
        """Per interface the aggregates that have one of its segments; and a segment that has none."""
        network, placement = self._others.network, self._others.placement
        if network is None or placement is None:
            return (), ""
        wanted: list[tuple[str, ...]] = []
        for entry in spec.requested_networks:
            aggregates: dict[str, None] = {}
            for segment in _segments(network, entry):
                try:
                    found = placement.aggregates(segment)[0]
                except NotFound:
                    found = []
                if not found:
                    return (), segment
                aggregates[found[0]] = None
            wanted.append(tuple(aggregates))
        return tuple(wanted), ""

    def _lowest_compute(self) -> int | None:
        at, lowest = self._lowest
        now = clock.monotonic()
        if (lowest is not None and lowest >= NEEDED) or now - at < VERSIONS_FOR:
            return lowest
        found = self._of_cells(surroundings.lowest_compute_version)
        lowest = min((version for version in found if version is not None), default=None)
        self._lowest = (now, lowest)
        return lowest

    def _counted(self) -> Mapping[str, Counter[tuple[str, str]]]:
        at, counted = self._images
        if clock.monotonic() - at < IMAGES_FOR:
            return counted
        merged: dict[str, Counter[tuple[str, str]]] = {}
        for found in self._of_cells(surroundings.image_properties):
            merged.update(found)
        self._images = (clock.monotonic(), merged)
        return merged

    def _of_cells(self, read: Any) -> list[Any]:
        answers = []
        for uuid in host_states.enabled_cells(self._databases.api):
            with tolerated(uuid):
                answers.append(read(self._databases.database(uuid)))
        return answers


def _segments(network: Network, entry: Mapping[str, Any]) -> list[str]:
    """Of a port with an address the segment of its first subnet, else all segments of the network."""
    subnets = network.list_subnets(network_id=entry["network"]["id"])
    if entry.get("port"):
        addresses = network.show_port(entry["port"]).get("fixed_ips") or []
        if addresses:
            subnets = [row for row in subnets if row["id"] == addresses[0]["subnet_id"]]
    return list(dict.fromkeys(row["segment_id"] for row in subnets if row.get("segment_id")))
