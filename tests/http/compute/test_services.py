"""/os-services in its two forms: by host until 2.52, by UUID later."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.http.compute.cloud import Client, boot, remove, until

HOST, DOOMED = "sim-0002", "sim-0005"


def service(client: Client, host: str = HOST) -> dict[str, Any]:
    (found,) = client.get(f"/os-services?host={host}&binary=nova-compute")["services"]
    return dict(found)


def traits(admin: Client, host: str) -> list[str]:
    (provider,) = admin.get(f"/resource_providers?name={host}", service="/placement")["resource_providers"]
    path = f"/resource_providers/{provider['uuid']}/traits"
    return list(admin.get(path, service="/placement", OpenStack_API_Version="placement 1.6")["traits"])


@pytest.fixture
def enabled(admin: Client) -> Iterator[str]:
    """The UUID of a compute service that is put back in use afterwards."""
    uuid = str(service(admin.at("2.53"))["id"])
    yield uuid
    admin.at("2.53").ok("PUT", f"/os-services/{uuid}", {"status": "enabled", "forced_down": False})


def test_the_list_has_every_process_with_its_zone(admin: Client) -> None:
    found = admin.at("2.53").get("/os-services")["services"]
    zones = {one["binary"]: one["zone"] for one in found}
    assert zones == {"nova-conductor": "internal", "nova-scheduler": "internal", "nova-compute": "nova"}
    assert {one["state"] for one in found} == {"up"}
    assert {one["status"] for one in found} == {"enabled"}


def test_what_a_service_shows_by_version(admin: Client) -> None:
    keys = {"id", "binary", "host", "zone", "status", "state", "updated_at", "disabled_reason"}
    assert set(service(admin.at("2.10"))) == keys
    assert set(service(admin.at("2.11"))) == keys | {"forced_down"}
    assert isinstance(service(admin.at("2.52"))["id"], int)
    assert len(service(admin.at("2.53"))["id"]) == 36


def test_filters_are_exact(admin: Client) -> None:
    assert admin.get("/os-services?host=sim")["services"] == []
    assert admin.get("/os-services?binary=nova")["services"] == []
    assert admin.get("/os-services?nonsense=1")["services"]
    admin.at("2.75").refused(400, "GET", "/os-services?nonsense=1")


def test_only_administrators(demo: Client) -> None:
    demo.refused(403, "GET", "/os-services")
    demo.refused(403, "PUT", "/os-services/enable", {"host": HOST, "binary": "nova-compute"})
    demo.refused(403, "DELETE", "/os-services/999")


def test_a_disabled_host_gets_no_servers(admin: Client, enabled: str) -> None:
    latest = admin.at("2.53")
    answer = latest.ok("PUT", f"/os-services/{enabled}", {"status": "disabled", "disabled_reason": "new disk"})
    assert answer["service"]["status"] == "disabled"
    assert answer["service"]["disabled_reason"] == "new disk"
    assert answer["service"]["zone"] == "nova"
    refused = boot(admin.at("2.74"), host=HOST)  # at once, before placement has the trait
    assert (refused["status"], refused["fault"]["code"]) == ("ERROR", 500)
    assert "No valid host" in refused["fault"]["message"]
    remove(admin, refused["id"])
    until(lambda: "COMPUTE_STATUS_DISABLED" in traits(admin, HOST))
    again = latest.ok("PUT", f"/os-services/{enabled}", {"status": "enabled"})["service"]
    assert (again["status"], again["disabled_reason"]) == ("enabled", None)
    until(lambda: "COMPUTE_STATUS_DISABLED" not in traits(admin, HOST))
    server = boot(admin.at("2.74"), host=HOST)
    assert server["OS-EXT-SRV-ATTR:host"] == HOST
    remove(admin, server["id"])


def test_a_fenced_host_counts_as_down(admin: Client, enabled: str) -> None:
    latest = admin.at("2.53")
    fenced = latest.ok("PUT", f"/os-services/{enabled}", {"forced_down": True})["service"]
    assert (fenced["state"], fenced["forced_down"], fenced["status"]) == ("down", True, "enabled")
    back = latest.ok("PUT", f"/os-services/{enabled}", {"forced_down": False})["service"]
    assert (back["state"], back["forced_down"]) == ("up", False)


@pytest.mark.parametrize("body", [
    {}, {"disabled_reason": "why"}, {"status": "enabled", "disabled_reason": "why"}, {"status": "off"},
    {"status": "disabled", "disabled_reason": ""}, {"forced_down": "perhaps"}, {"host": "h", "binary": "b"},
])  # fmt: skip
def test_an_update_by_uuid_refuses(admin: Client, enabled: str, body: dict[str, Any]) -> None:
    admin.at("2.53").refused(400, "PUT", f"/os-services/{enabled}", body)


def test_an_update_by_uuid_needs_one_of_a_compute_service(admin: Client) -> None:
    latest = admin.at("2.53")
    latest.refused(400, "PUT", "/os-services/enable", {"status": "enabled"})
    latest.refused(404, "PUT", "/os-services/5d1dd49e-5b6c-4d7b-9ad4-5d1dd49e5b6c", {"status": "enabled"})
    (conductor,) = latest.get("/os-services?binary=nova-conductor")["services"]
    latest.refused(400, "PUT", f"/os-services/{conductor['id']}", {"status": "disabled"})


def test_the_actions_by_host(admin: Client, enabled: str) -> None:
    named = {"host": HOST, "binary": "nova-compute"}
    answer = admin.ok("PUT", "/os-services/disable", named)
    assert answer == {"service": named | {"status": "disabled"}}
    answer = admin.ok("PUT", "/os-services/disable-log-reason", named | {"disabled_reason": "x"})
    assert answer == {"service": named | {"status": "disabled", "disabled_reason": "x"}}
    assert service(admin)["disabled_reason"] == "x"
    assert admin.ok("PUT", "/os-services/enable", named) == {"service": named | {"status": "enabled"}}
    fence = named | {"forced_down": True}
    assert admin.at("2.11").ok("PUT", "/os-services/force-down", fence) == {"service": fence}
    assert service(admin)["state"] == "down"


def test_the_actions_by_host_refuse(admin: Client) -> None:
    named = {"host": HOST, "binary": "nova-compute"}
    admin.refused(404, "PUT", "/os-services/enable", named | {"host": "nowhere"})
    admin.refused(404, "PUT", "/os-services/destroy", named)
    admin.refused(404, "PUT", "/os-services/force-down", named)  # not yet at 2.1
    admin.refused(400, "PUT", "/os-services/enable", named | {"forced_down": True})
    admin.at("2.11").refused(400, "PUT", "/os-services/force-down", named)
    admin.refused(400, "PUT", "/os-services/disable-log-reason", named)
    admin.refused(400, "PUT", "/os-services/disable", named | {"binary": "nova-conductor"})
    admin.refused(400, "PUT", "/os-services/disable", {"host": HOST})


@pytest.mark.parametrize(("version", "key", "status"), [
    ("2.1", "abc", 400), ("2.1", "99999", 404), ("2.53", "7", 400),
    ("2.53", "5d1dd49e-5b6c-4d7b-9ad4-5d1dd49e5b6c", 404),
])  # fmt: skip
def test_delete_needs_an_id_of_the_version(admin: Client, version: str, key: str, status: int) -> None:
    admin.at(version).refused(status, "DELETE", f"/os-services/{key}")


def test_a_host_leaves_with_all_that_belongs_to_it_and_not_while_it_has_servers(admin: Client) -> None:
    latest = admin.at("2.53")
    for left in latest.get(f"/servers?all_tenants=1&host={DOOMED}")["servers"]:  # by other tests
        remove(admin, left["id"])
    uuid = service(latest, DOOMED)["id"]
    group = latest.ok("POST", "/os-aggregates", {"aggregate": {"name": "last"}})["aggregate"]["id"]
    latest.ok("POST", f"/os-aggregates/{group}/action", {"add_host": {"host": DOOMED}})
    server = boot(admin, availability_zone=f"nova:{DOOMED}")
    assert "servers" in latest.refused(409, "DELETE", f"/os-services/{uuid}")
    remove(admin, server["id"])
    latest.ok("DELETE", f"/os-services/{uuid}", status=204)
    latest.refused(404, "DELETE", f"/os-services/{uuid}")
    assert latest.get(f"/os-aggregates/{group}")["aggregate"]["hosts"] == []
    assert latest.status("GET", f"/os-hypervisors?hypervisor_hostname_pattern={DOOMED}") == 404
    assert admin.get(f"/resource_providers?name={DOOMED}", service="/placement")["resource_providers"] == []
    latest.ok("DELETE", f"/os-aggregates/{group}")
