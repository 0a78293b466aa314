"""What is asked of others before a request is judged: segments of networks, versions of services, images of servers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from kilonova.bus.calls import SelectDestinations
from kilonova.core import clock, ids
from kilonova.core.context import Context
from kilonova.core.request_spec import ImageSpec, RequestSpec
from kilonova.core.scheduling import NoValidHost, RequestFilterFailed
from kilonova.core.server import Server, ServerExtra
from kilonova.db.queries import servers
from kilonova.scheduler import surroundings
from kilonova.scheduler.service import Scheduler
from kilonova.scheduler.settings import SchedulerSettings
from kilonova.scheduler.surroundings import Look, Others
from tests.scheduler.world import SMALL, Cloud, Provider, spec_of

CONTEXT = Context(overwrite=False)
ROUTED = {"query_placement_for_routed_network_aggregates": True}


class Network:
    """Two routed networks, each with two segments of one subnet, and one without segments."""

    def list_subnets(self, **filters: Any) -> list[dict[str, Any]]:
        net = filters["network_id"]
        if net == "plain":
            return [{"id": "s0", "segment_id": None}]
        return [{"id": f"{net}-{side}", "segment_id": f"{net}-seg-{side}"} for side in ("east", "west")]

    def show_port(self, port: str) -> dict[str, Any]:
        fixed = {"placed": [{"subnet_id": "blue-west", "ip_address": "192.0.2.9"}]}
        return {"id": port, "fixed_ips": fixed.get(port, [])}


def interface(net: str, port: str | None = None) -> dict[str, Any]:
    return {"network": {"id": net}, "port": port}


@pytest.fixture
def routed(cloud: Cloud) -> Cloud:
    """Hosts east and west, each in the aggregates that have its segments."""
    cloud.add_hosts("east", "west")
    for net in ("blue", "red"):
        for side in ("east", "west"):
            mine = f"agg-{net}-{side}"
            cloud.provider(side).aggregates.add(mine)
            cloud.placement.providers[f"{net}-seg-{side}"] = Provider(f"{net}-seg-{side}", {}, aggregates={mine})
    return cloud


def landed(cloud: Cloud, networks: Sequence[dict[str, Any]], **options: Any) -> set[str]:
    others = Others(network=Network(), placement=cloud.placement)
    made = Scheduler(cloud, cloud.placement, SchedulerSettings(**options), others=others)
    asked = SelectDestinations(spec_of(requested_networks=tuple(networks)), (ids.new_uuid(),))
    return {row.host for row in made.select_destinations(CONTEXT, asked).selections[0]}


@pytest.mark.parametrize(
    ("networks", "expected"),
    [
        ([], {"east", "west"}),
        ([interface("plain")], {"east", "west"}),
        ([interface("blue")], {"east", "west"}),  # any segment of the network will do
        ([interface("blue", "placed")], {"west"}),  # the segment of the port's subnet
        ([interface("blue", "unplaced")], {"east", "west"}),
        ([interface("blue", "placed"), interface("red")], {"west"}),
    ],
)
def test_a_server_goes_where_the_segments_of_its_networks_are(
    routed: Cloud, networks: list[dict[str, Any]], expected: set[str]
) -> None:
    assert landed(routed, networks, **ROUTED) == expected
    assert landed(routed, networks) == {"east", "west"}  # off until it is set


@pytest.mark.parametrize("broken", ["gone", "bare"])
def test_a_segment_that_placement_does_not_know_or_that_has_no_aggregate_is_no_valid_host(
    routed: Cloud, broken: str
) -> None:
    if broken == "gone":
        del routed.placement.providers["blue-seg-east"]
    else:
        routed.placement.providers["blue-seg-east"].aggregates.clear()
    with pytest.raises(RequestFilterFailed, match="Segment blue-seg-east has no aggregate"):
        landed(routed, [interface("blue")], **ROUTED)


def test_the_lowest_version_is_asked_for_until_it_is_high_enough(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    cloud.add_hosts("a", "b")
    cloud.change_service("b", version=72)
    monkeypatch.setattr(surroundings, "VERSIONS_FOR", 0.0)
    look = Look(cloud, Others(), SchedulerSettings(), ())

    def lowest() -> int | None:
        return look.around(CONTEXT, spec_of()).lowest_compute

    assert lowest() == 72
    cloud.change_service("b", version=73)
    assert lowest() == 73
    cloud.change_service("b", version=1)
    assert lowest() == 73, "an older service does not join any more"


def test_a_cloud_without_hosts_has_no_lowest_version(cloud: Cloud) -> None:
    assert Look(cloud, Others(), SchedulerSettings(), ()).around(CONTEXT, spec_of()).lowest_compute is None


def server_on(cloud: Cloud, host: str, **properties: str) -> None:
    server = Server(
        uuid=ids.new_uuid(), project_id="p", user_id="u", display_name="s", hostname="s", host=host,
        instance_type_id=1, memory_mb=1, vcpus=1, root_gb=0, ephemeral_gb=0, flavor={}, reservation_id="r",
        created_at=clock.utcnow(),
        system_metadata={f"image_{name}": value for name, value in properties.items()} | {"note": "x"},
    )  # fmt: skip
    with cloud.cell.write() as connection:
        servers.insert(connection, server, ServerExtra(), [])


def test_hosts_with_servers_of_like_images_come_first_when_that_is_weighed(cloud: Cloud) -> None:
    cloud.add_hosts("a", "b", "c")
    server_on(cloud, "b", os_distro="debian")
    server_on(cloud, "c", os_distro="fedora")
    image = ImageSpec(id="i", properties={"os_distro": "debian"})

    def first(**options: Any) -> str:
        settings = SchedulerSettings(weight_classes=("ImagePropertiesWeigher",), **options)
        made = Scheduler(cloud, cloud.placement, settings)
        asked = SelectDestinations(spec_of(image=image), (ids.new_uuid(),))
        return made.select_destinations(CONTEXT, asked).selections[0][0].host

    assert first() == "a"
    assert first(image_props_weight_multiplier=1.0) == "b"
    assert first(image_props_weight_multiplier=-1.0) == "a"


def test_a_filter_that_needs_an_identity_service_says_so_where_there_is_none(cloud: Cloud) -> None:
    made = Scheduler(cloud, cloud.placement, SchedulerSettings(enabled_filters=("ProjectTagsFilter",)))
    asked = SelectDestinations(RequestSpec(project_id="p", user_id="u", flavor=SMALL), (ids.new_uuid(),))
    with pytest.raises(NoValidHost, match="knows no identity service"):
        made.select_destinations(CONTEXT, asked)
