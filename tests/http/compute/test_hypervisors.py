"""/os-hypervisors: ids, paging, what is shown at which version, and the routes that end."""

from __future__ import annotations

from typing import Any

import pytest

from tests.http.compute.cloud import Client

BASIC = {"id", "hypervisor_hostname", "state", "status"}
FULL = BASIC | {"hypervisor_type", "hypervisor_version", "host_ip", "service"}
USAGE = {
    "vcpus", "memory_mb", "local_gb", "vcpus_used", "memory_mb_used", "local_gb_used", "free_ram_mb", "free_disk_gb",
    "current_workload", "running_vms", "disk_available_least", "cpu_info",
}  # fmt: skip


def nodes(client: Client, query: str = "") -> list[dict[str, Any]]:
    return list(client.get(f"/os-hypervisors{query}")["hypervisors"])


def one(client: Client, key: object) -> dict[str, Any]:
    return dict(client.get(f"/os-hypervisors/{key}")["hypervisor"])


def test_ids_are_numbers_and_then_uuids(admin: Client) -> None:
    old, new = admin.at("2.52"), admin.at("2.53")
    number, uuid = nodes(old)[0]["id"], nodes(new)[0]["id"]
    assert isinstance(number, int)
    assert one(old, number)["hypervisor_hostname"] == one(new, uuid)["hypervisor_hostname"]
    assert isinstance(one(old, number)["service"]["id"], int)
    assert len(one(new, uuid)["service"]["id"]) == 36
    new.refused(400, "GET", f"/os-hypervisors/{number}")
    new.refused(404, "GET", "/os-hypervisors/5d1dd49e-5b6c-4d7b-9ad4-5d1dd49e5b6c")
    old.refused(404, "GET", f"/os-hypervisors/{uuid}")
    old.refused(404, "GET", "/os-hypervisors/99999")


@pytest.mark.parametrize(("version", "keys"), [
    ("2.1", FULL | USAGE), ("2.87", FULL | USAGE), ("2.88", FULL | {"uptime"}),
])  # fmt: skip
def test_what_a_hypervisor_shows(admin: Client, version: str, keys: set[str]) -> None:
    client = admin.at(version)
    listed = nodes(client)[0]
    assert set(listed) == BASIC
    shown = one(client, listed["id"])
    assert set(shown) == keys
    assert shown in client.get("/os-hypervisors/detail")["hypervisors"]
    assert (shown["state"], shown["status"]) == ("up", "enabled")


def test_cpu_info_is_text_and_then_an_object(admin: Client) -> None:
    assert isinstance(admin.at("2.27").get("/os-hypervisors/detail")["hypervisors"][0]["cpu_info"], str)
    assert isinstance(admin.at("2.28").get("/os-hypervisors/detail")["hypervisors"][0]["cpu_info"], dict)


@pytest.mark.parametrize("version", ["2.33", "2.53"])
def test_pages_follow_their_links(admin: Client, version: str) -> None:
    client = admin.at(version)
    everything = nodes(client)
    seen: list[dict[str, Any]] = []
    path = "/os-hypervisors?limit=2"
    while path:
        page = client.get(path)
        seen += page["hypervisors"]
        link = page.get("hypervisors_links", [{"href": ""}])[0]["href"]
        path = link.partition("/compute/v2.1")[2]
    assert seen == everything
    assert "hypervisors_links" not in admin.get("/os-hypervisors?limit=2")  # before 2.33 there are no pages
    assert nodes(client, "?limit=0") == []


def test_markers_and_queries_that_cannot_be(admin: Client) -> None:
    admin.at("2.33").refused(400, "GET", "/os-hypervisors?marker=99999")
    admin.at("2.33").refused(400, "GET", "/os-hypervisors?marker=abc")
    new = admin.at("2.53")
    for query in ("marker=5d1dd49e-5b6c-4d7b-9ad4-5d1dd49e5b6c", "limit=-1", "limit=1&limit=2", "nonsense=1",
                  "with_servers=perhaps", "hypervisor_hostname_pattern=sim&limit=1"):  # fmt: skip
        new.refused(400, "GET", f"/os-hypervisors?{query}")


def test_a_pattern_is_a_part_of_the_name(admin: Client) -> None:
    new = admin.at("2.53")
    assert [node["hypervisor_hostname"] for node in nodes(new, "?hypervisor_hostname_pattern=m-0002")] == ["sim-0002"]
    new.refused(404, "GET", "/os-hypervisors?hypervisor_hostname_pattern=sim_000")
    old = admin.at("2.52")
    assert [node["hypervisor_hostname"] for node in old.get("/os-hypervisors/0002/search")["hypervisors"]] == [
        "sim-0002"]  # fmt: skip
    old.refused(404, "GET", "/os-hypervisors/nowhere/search")
    old.refused(404, "GET", "/os-hypervisors/nowhere/servers")
    new.refused(404, "GET", "/os-hypervisors/0002/search")
    new.refused(404, "GET", "/os-hypervisors/0002/servers")


def test_servers_on_request(admin: Client, server: dict[str, Any]) -> None:
    shown = admin.get(f"/servers/{server['id']}")["server"]
    host = shown["OS-EXT-SRV-ATTR:host"]
    entry = {"uuid": server["id"], "name": shown["OS-EXT-SRV-ATTR:instance_name"]}
    for client, empty in ((admin.at("2.53"), None), (admin.at("2.75"), [])):
        by_name = {node["hypervisor_hostname"]: node for node in nodes(client, "?with_servers=true")}
        assert entry in by_name[host]["servers"]
        assert entry in one(client, by_name[host]["id"] + "?with_servers=1")["servers"]
        idle = [node.get("servers") for node in by_name.values() if not node.get("servers")]
        assert idle
        assert all(found == empty for found in idle)
    (old,) = admin.at("2.52").get(f"/os-hypervisors/{host}/servers")["hypervisors"]
    assert entry in old["servers"]


def test_statistics_are_sums_until_2_87(admin: Client) -> None:
    every = admin.get("/os-hypervisors/detail")["hypervisors"]
    sums = admin.get("/os-hypervisors/statistics")["hypervisor_statistics"]
    assert set(sums) == (USAGE - {"cpu_info"}) | {"count"}
    assert sums["count"] == len(every)
    assert sums["memory_mb"] == sum(node["memory_mb"] for node in every)
    admin.at("2.88").refused(404, "GET", "/os-hypervisors/statistics")


def test_what_runs_nothing_has_no_uptime(admin: Client) -> None:
    old, new = admin.at("2.87"), admin.at("2.88")
    uuid = nodes(old)[0]["id"]
    assert "uptime" in old.refused(501, "GET", f"/os-hypervisors/{uuid}/uptime")
    assert one(new, uuid)["uptime"] is None
    new.refused(404, "GET", f"/os-hypervisors/{uuid}/uptime")


def test_the_uptime_of_a_host_that_is_down_is_refused(admin: Client) -> None:
    client = admin.at("2.53")
    node = one(client, nodes(client)[0]["id"])
    service = f"/os-services/{node['service']['id']}"
    client.ok("PUT", service, {"forced_down": True})
    assert one(client, node["id"])["state"] == "down"
    client.refused(400, "GET", f"/os-hypervisors/{node['id']}/uptime")
    client.ok("PUT", service, {"forced_down": False})


def test_only_administrators(demo: Client) -> None:
    for path in ("", "/detail", "/statistics", "/1", "/1/uptime", "/x/search", "/x/servers"):
        demo.refused(403, "GET", "/os-hypervisors" + path)
