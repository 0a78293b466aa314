"""Which host a server gets: zones, aggregates, disabled services; and what happens when there is none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.databases import Places
from tests.http.compute.cloud import Client, until
from tests.scenario.stage import NOTHING, Stage, becomes, boot, create, delete, image, stage

VERSION = "2.96"


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory, places: Places) -> Iterator[Stage]:
    with stage(tmp_path_factory.mktemp("zones") / "state", places, hosts=3) as made:
        yield made


@pytest.fixture
def hosts(here: Stage) -> Iterator[list[str]]:
    """The three hosts; afterwards no server is left."""
    found = here.admin.at(VERSION).get("/os-services?binary=nova-compute")["services"]
    yield sorted(row["host"] for row in found)
    servers = here.demo.get("/servers")["servers"]
    delete(here.demo, *(row["id"] for row in servers))
    assert here.left() == NOTHING


def host_of(here: Stage, server: str) -> str:
    """Where a server is, as an administrator sees it."""
    return str(here.admin.get(f"/servers/{server}")["server"]["OS-EXT-SRV-ATTR:host"])


def set_status(here: Stage, host: str, status: str) -> None:
    """Enable or disable the compute service of a host."""
    admin = here.admin.at(VERSION)
    (row,) = admin.get(f"/os-services?binary=nova-compute&host={host}")["services"]
    reason = {"disabled_reason": "maintenance"} if status == "disabled" else {}
    admin.ok("PUT", f"/os-services/{row['id']}", {"status": status} | reason)


def test_a_zone_of_an_aggregate_is_where_its_servers_go(here: Stage, hosts: list[str]) -> None:
    admin, demo = here.admin.at(VERSION), here.demo.at(VERSION)
    body = {"aggregate": {"name": "east", "availability_zone": "east"}}
    made = admin.ok("POST", "/os-aggregates", body)["aggregate"]["id"]
    admin.ok("POST", f"/os-aggregates/{made}/action", {"add_host": {"host": hosts[1]}})
    zones = demo.get("/os-availability-zone")["availabilityZoneInfo"]
    assert {row["zoneName"] for row in zones} == {"nova", "east"}
    for _ in range(3):
        server = boot(demo, availability_zone="east", networks="none")
        assert server["OS-EXT-AZ:availability_zone"] == "east"
        assert host_of(here, server["id"]) == hosts[1]
    elsewhere = boot(demo, availability_zone="nova", networks="none")
    assert host_of(here, elsewhere["id"]) != hosts[1]
    nowhere = {"name": "s", "flavorRef": "42", "imageRef": image(demo), "networks": "none", "availability_zone": "west"}
    demo.refused(400, "POST", "/servers", {"server": nowhere})
    delete(demo, *(row["id"] for row in demo.get("/servers")["servers"]))
    admin.ok("POST", f"/os-aggregates/{made}/action", {"remove_host": {"host": hosts[1]}})
    admin.ok("DELETE", f"/os-aggregates/{made}")
    assert {row["zoneName"] for row in demo.get("/os-availability-zone")["availabilityZoneInfo"]} == {"nova"}


def test_a_disabled_host_gets_no_server_until_it_is_enabled(here: Stage, hosts: list[str]) -> None:
    demo = here.demo.at(VERSION)
    for host in hosts[:2]:
        set_status(here, host, "disabled")
    try:
        placed = {host_of(here, boot(demo, networks="none")["id"]) for _ in range(3)}
        assert placed == {hosts[2]}
    finally:
        for host in hosts[:2]:
            set_status(here, host, "enabled")
    forbidding = "/resource_providers?required=COMPUTE_STATUS_DISABLED"
    until(lambda: here.placement(forbidding)["resource_providers"] == [])  # the agent tells placement a little later
    placed = {host_of(here, boot(demo, networks="none")["id"]) for _ in range(2)}
    assert placed == set(hosts[:2])


def test_an_administrator_names_the_host(here: Stage, hosts: list[str]) -> None:
    server = boot(here.admin.at(VERSION), availability_zone=f"nova:{hosts[2]}", networks="none")
    assert server["OS-EXT-SRV-ATTR:host"] == hosts[2]
    delete(here.admin, server["id"])


def test_a_server_that_no_host_can_take_is_an_error_with_the_reason_and_can_be_deleted(
    here: Stage, hosts: list[str]
) -> None:
    demo = here.demo.at(VERSION)
    huge = {"name": "huge", "ram": 64, "vcpus": 1, "disk": 1_000_000, "id": "huge"}
    here.admin.ok("POST", "/flavors", {"flavor": huge})
    server = becomes(demo, create(demo, flavorRef="huge", networks="none"), "ERROR")
    assert server["fault"]["code"] == 500
    assert server["fault"]["message"].startswith("No valid host was found.")
    assert server["OS-EXT-STS:vm_state"] == "error"
    (action,) = demo.get(f"/servers/{server['id']}/os-instance-actions")["instanceActions"]
    assert action["message"] == "Error"
    delete(demo, server["id"])
    assert demo.get("/servers")["servers"] == []
    here.admin.ok("DELETE", "/flavors/huge")


def faulty(tmp_path: Path, faults: str) -> Any:
    """A cloud whose hypervisors fail as ordered; on SQLite, because what hypervisors do is no matter of databases."""
    return stage(tmp_path / "state", hosts=4, config=f"[simulated]\nfaults = {faults}\n")


def test_a_host_that_fails_is_replaced_by_another(tmp_path: Path) -> None:
    with faulty(tmp_path, "spawn@1") as here:
        server = boot(here.demo.at(VERSION))
        (provider,) = here.allocations(server["id"])
        assert provider == here.provider(host_of(here, server["id"]))
        delete(here.demo, server["id"])
        assert here.left() == NOTHING


def test_when_every_host_fails_the_server_is_an_error_and_holds_nothing(tmp_path: Path) -> None:
    with faulty(tmp_path, "spawn@1-9") as here:
        demo: Client = here.demo.at(VERSION)
        server = becomes(demo, create(demo), "ERROR")
        assert "fault" in server
        assert here.used() == {}
        delete(demo, server["id"])
        assert here.left() == NOTHING
        assert boots_again(here)


def boots_again(here: Stage) -> bool:
    """Whether the next server comes up: what is left of the ordered faults is used up on the way."""
    for _ in range(4):
        made = create(here.demo.at(VERSION))
        shown = settled(here.demo.at(VERSION), made)
        delete(here.demo, made)
        if shown["status"] == "ACTIVE":
            return True
    return False


def settled(client: Client, server: str) -> dict[str, Any]:
    """The server once it is ACTIVE or ERROR."""
    def found() -> dict[str, Any] | None:
        shown: dict[str, Any] = client.get(f"/servers/{server}")["server"]
        return shown if shown["status"] in ("ACTIVE", "ERROR") else None

    shown: dict[str, Any] = until(found)
    return shown
