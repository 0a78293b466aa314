"""/os-availability-zone: available zones first; the internal one and hosts only in detail."""

from __future__ import annotations

from tests.http.compute.cloud import Client


def test_users_see_names_without_hosts(demo: Client) -> None:
    found = demo.get("/os-availability-zone")["availabilityZoneInfo"]
    assert {"zoneName": "nova", "zoneState": {"available": True}, "hosts": None} in found
    assert "internal" not in [zone["zoneName"] for zone in found]
    demo.refused(403, "GET", "/os-availability-zone/detail")


def test_detail_has_the_services_by_host(admin: Client) -> None:
    zones = {zone["zoneName"]: zone for zone in admin.get("/os-availability-zone/detail")["availabilityZoneInfo"]}
    service = zones["nova"]["hosts"]["sim-0001"]["nova-compute"]
    assert (service["available"], service["active"]) == (True, True)
    assert service["updated_at"]
    (processes,) = zones["internal"]["hosts"].values()
    assert set(processes) == {"nova-conductor", "nova-scheduler"}


def test_a_zone_of_disabled_hosts_is_not_available_and_comes_last(admin: Client, demo: Client) -> None:
    new = admin.at("2.53")
    group = admin.ok("POST", "/os-aggregates", {"aggregate": {"name": "dark", "availability_zone": "dark"}})
    number = group["aggregate"]["id"]
    admin.ok("POST", f"/os-aggregates/{number}/action", {"add_host": {"host": "sim-0004"}})
    (service,) = new.get("/os-services?host=sim-0004")["services"]
    new.ok("PUT", f"/os-services/{service['id']}", {"status": "disabled"})
    found = demo.get("/os-availability-zone")["availabilityZoneInfo"]
    assert found[-1] == {"zoneName": "dark", "zoneState": {"available": False}, "hosts": None}
    assert admin.get("/os-availability-zone/detail")["availabilityZoneInfo"][-1]["hosts"] is None
    new.ok("PUT", f"/os-services/{service['id']}", {"status": "enabled"})
    admin.ok("POST", f"/os-aggregates/{number}/action", {"remove_host": {"host": "sim-0004"}})
    admin.ok("DELETE", f"/os-aggregates/{number}")


def test_queries_are_refused_from_2_102(demo: Client) -> None:
    demo.at("2.101").get("/os-availability-zone?x=1")
    demo.at("2.102").refused(400, "GET", "/os-availability-zone?x=1")
