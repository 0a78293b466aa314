"""The story of the first issue on separate processes, databases and a broker: token, server, ACTIVE, gone."""

from __future__ import annotations

from tests.deploy.deployment import Deployment
from tests.http.compute.cloud import until
from tests.scenario.stage import becomes, create, delete


def flavors(client) -> None:
    if not client.get("/flavors")["flavors"]:
        body = {"flavor": {"name": "m1.nano", "id": "42", "ram": 192, "disk": 1, "vcpus": 1}}
        client.ok("POST", "/flavors", body, status=200)


def test_a_server_is_made_and_deleted_and_leaves_nothing(deployed: Deployment) -> None:
    admin, demo = deployed.login("admin", "admin"), deployed.login("demo", "demo").at("2.96")
    flavors(admin)
    until(lambda: len(admin.get("/os-hypervisors")["hypervisors"]) == 6, 30)
    server = create(demo)
    shown = becomes(demo, server, "ACTIVE", 30)
    assert shown["addresses"]["private"]
    delete(demo, server)
