"""What others are told of decisions: when, in which words, and never at the decision's cost."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from kilonova.bus.calls import SelectDestinations
from kilonova.bus.notifications import Notification, Notifications
from kilonova.core import ids, json
from kilonova.core.context import Context
from kilonova.core.pci.requests import PciRequest
from kilonova.core.request_spec import Destination, GroupSpec, ImageSpec, RequestSpec
from kilonova.core.scheduling import NoValidHost
from kilonova.scheduler.notices import Notices, payload, unversioned_payload
from kilonova.scheduler.service import Scheduler
from kilonova.scheduler.settings import SchedulerSettings
from tests.scheduler.world import CELL, SMALL, Cloud, spec_of

CONTEXT = Context(request_id="req-1", overwrite=False)


class Heard:
    """A sender that remembers."""

    def __init__(self) -> None:
        self.seen: list[Notification] = []

    def send(self, notification: Notification) -> None:
        self.seen.append(notification)

    def close(self) -> None:
        """Nothing is open."""

    def kinds(self, *, versioned: bool) -> list[tuple[str, str]]:
        """Event type and publisher of each, in one format."""
        return [(row.event_type, row.publisher) for row in self.seen if row.versioned is versioned]


def decide(cloud: Cloud, heard: Heard, spec: RequestSpec, server: str) -> None:
    told = Notifications(lambda: heard)
    made = Scheduler(cloud, cloud.placement, SchedulerSettings(), notices=Notices(told, "h1"))
    told.start()
    try:
        made.select_destinations(CONTEXT, SelectDestinations(spec, (server,)))
    finally:
        told.stop()


def test_start_and_end_of_a_decision_are_told_in_both_formats(cloud: Cloud) -> None:
    cloud.add_hosts("a")
    heard, server = Heard(), ids.new_uuid()
    decide(cloud, heard, spec_of(), server)
    event = "scheduler.select_destinations"
    assert heard.kinds(versioned=True) == [(f"{event}.{word}", "nova-scheduler:h1") for word in ("start", "end")]
    assert heard.kinds(versioned=False) == [(f"{event}.{word}", "scheduler.h1") for word in ("start", "end")]
    assert {row.context["request_id"] for row in heard.seen} == {"req-1"}
    for row in heard.seen:
        where = row.payload["nova_object.data"] if row.versioned else row.payload["request_spec"]["instance_properties"]
        assert server in (where.get("instance_uuid"), where.get("uuid"))


def test_of_a_decision_that_fails_there_is_no_end(cloud: Cloud) -> None:
    heard = Heard()
    with pytest.raises(NoValidHost):
        decide(cloud, heard, spec_of(), ids.new_uuid())
    assert {row.event_type for row in heard.seen} == {"scheduler.select_destinations.start"}


def test_who_listens_badly_changes_no_decision(cloud: Cloud) -> None:
    cloud.add_hosts("a")

    class Broken(Heard):
        def send(self, notification: Notification) -> None:
            raise OSError("away")

    decide(cloud, Broken(), spec_of(), server := ids.new_uuid())
    assert server in cloud.placement.consumers


def whole() -> RequestSpec:
    """A request with everything that there may be."""
    return RequestSpec(
        "p", "u", SMALL, ImageSpec(id="i", name="n", disk_format="raw", properties={"hw_architecture": "x86_64"}),
        num_instances=2, availability_zone="z", force_hosts=("h1", "h2"), ignore_hosts=("x",),
        requested_destination=Destination(host="h", cell=CELL, aggregates=(("a", "b"), ("c",))),
        scheduler_hints={"group": ["g"]}, group=GroupSpec("g", "anti-affinity", {"max_server_per_host": 2}, ("h",)),
        security_groups=("default",), pci_requests=(PciRequest("r", 2, ({"vendor_id": "8086"},), "gpu", "legacy"),),
    )  # fmt: skip


def plain(found: Any) -> Any:
    """A payload without its names and versions."""
    if isinstance(found, dict):
        return {key: plain(value) for key, value in found.get("nova_object.data", found).items()}
    return [plain(row) for row in found] if isinstance(found, list) else found


def names(found: Any) -> set[tuple[str, str]]:
    """The names and versions in a payload."""
    if isinstance(found, list):
        return set().union(*map(names, found)) if found else set()
    if not isinstance(found, dict):
        return set()
    own = {(found["nova_object.name"], found["nova_object.version"])} if "nova_object.name" in found else set()
    return own.union(*map(names, found.values())) if found else own


def test_the_versioned_payload_has_the_request_in_novas_fields() -> None:
    made = payload(whole(), "s")
    assert json.loads(json.dumps(made)) == made, "nothing in it but what JSON has"
    assert names(made) == {
        ("RequestSpecPayload", "1.1"), ("FlavorPayload", "1.4"), ("ImageMetaPayload", "1.0"),
        ("ImageMetaPropsPayload", "1.20"), ("InstancePCIRequestsPayload", "1.0"),
        ("InstancePCIRequestPayload", "1.1"), ("DestinationPayload", "1.0"), ("CellMappingPayload", "2.0"),
        ("ServerGroupPayload", "1.1"),
    }  # fmt: skip
    found = plain(made)
    assert (found["instance_uuid"], found["num_instances"], found["availability_zone"]) == ("s", 2, "z")
    assert (found["force_hosts"], found["force_nodes"], found["ignore_hosts"]) == ("h1", None, ["x"])
    assert (found["requested_destination"]["aggregates"], found["instance_group"]["rules"]) == (
        ["a,b", "c"], {"max_server_per_host": "2"},
    )  # fmt: skip
    assert found["image"]["properties"] == {"hw_architecture": "x86_64"}
    assert found["pci_requests"]["requests"] == [
        {"request_id": "r", "alias_name": "gpu", "count": 2, "spec": [{"vendor_id": "8086"}], "numa_policy": "legacy"}
    ]
    assert set(found["flavor"]) == {
        "flavorid", "name", "memory_mb", "vcpus", "root_gb", "ephemeral_gb", "swap", "rxtx_factor", "vcpu_weight",
        "disabled", "is_public", "extra_specs", "projects", "description",
    }  # fmt: skip


def test_a_guest_with_numa_cells_is_told_with_them() -> None:
    spec = spec_of(replace(SMALL, extra_specs={"hw:numa_nodes": "1", "hw:cpu_policy": "dedicated"}))
    found = payload(spec, "s")["nova_object.data"]["numa_topology"]
    assert names(found) == {("InstanceNUMATopologyPayload", "1.0"), ("InstanceNUMACellPayload", "1.2")}
    (cell,) = plain(found)["cells"]
    assert (cell["pcpuset"], cell["memory"], cell["cpu_policy"]) == ([0], SMALL.memory_mb, "dedicated")


def test_a_flavor_that_contradicts_itself_is_told_without_a_topology() -> None:
    spec = spec_of(replace(SMALL, extra_specs={"hw:numa_nodes": "many"}))
    assert payload(spec, "s")["nova_object.data"]["numa_topology"] is None


def test_the_older_payload_has_the_request_as_plain_maps() -> None:
    found = unversioned_payload(whole(), "s")["request_spec"]
    assert json.loads(json.dumps(found)) == found
    assert set(found) == {"num_instances", "image", "instance_type", "instance_properties"}
    own = found["instance_properties"]
    assert (own["uuid"], own["memory_mb"], own["vcpus"], own["root_gb"]) == ("s", SMALL.memory_mb, 1, SMALL.root_gb)
    assert found["instance_type"]["flavorid"] == SMALL.flavorid
