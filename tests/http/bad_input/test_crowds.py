"""A hundred at once, for less than a hundred: nothing is counted twice, lost, or half made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.http.compute.cloud import PASSWORD, Answer, Client, login, until

CROWD = 100


def at_once(ask: Callable[[int], Answer]) -> list[Answer]:
    """The answers of a hundred requests from sixteen threads."""
    with ThreadPoolExecutor(16) as pool:
        return list(pool.map(ask, range(CROWD)))


def counted(answers: list[Answer]) -> dict[int, int]:
    return dict(Counter(answer.status for answer in answers))


@pytest.fixture(scope="module")
def crowd(admin: Client) -> Client:
    """A member of a project of its own, which other tests of the module use up."""
    values = {"name": "crowd", "domain_id": "default"}
    user = admin.ok("POST", "/v3/users", {"user": values | {"password": PASSWORD}}, service="/identity")["user"]["id"]
    project = admin.ok("POST", "/v3/projects", {"project": values}, service="/identity")["project"]["id"]
    role = admin.get("/v3/roles?name=member", service="/identity")["roles"][0]["id"]
    admin.ok("PUT", f"/v3/projects/{project}/users/{user}/roles/{role}", service="/identity")
    return login(admin.transport, "crowd", "crowd").at("2.60")


@pytest.fixture
def quota(crowd: Client, admin: Client) -> Iterator[Callable[..., None]]:
    def change(**values: int) -> None:
        admin.ok("PUT", f"/os-quota-sets/{crowd.project}", {"quota_set": values})

    yield change
    admin.ok("DELETE", f"/os-quota-sets/{crowd.project}", status=202)


@pytest.fixture
def nothing_left(crowd: Client, admin: Client) -> Iterator[None]:
    """Afterwards all servers go, and with them every claim, port and used quota."""
    yield
    for server in crowd.get("/servers")["servers"]:
        crowd.ok("DELETE", f"/servers/{server['id']}", status=204)
    until(lambda: not crowd.get("/servers")["servers"])
    until(lambda: usage(admin, crowd.project) == {})
    used = crowd.get("/limits")["limits"]["absolute"]
    assert [used[f"total{what}Used"] for what in ("Instances", "Cores", "RAM")] == [0, 0, 0]
    ports = admin.get(f"/v2.0/ports?project_id={crowd.project}", service="/networking")["ports"]
    assert [port for port in ports if port["device_owner"].startswith("compute:")] == []


def usage(admin: Client, project: str) -> dict[str, int]:
    """What placement counts for a project."""
    answer = admin.get(f"/usages?project_id={project}", service="/placement", OpenStack_API_Version="placement 1.37")
    return {name: amount for name, amount in answer["usages"].items() if amount}


def new_server(client: Client, **values: Any) -> dict[str, Any]:
    image = client.get("/v2/images?status=active", service="/image")["images"][0]["id"]
    return {"server": {"name": "s", "flavorRef": "42", "imageRef": image, "networks": "none"} | values}


def settled(client: Client) -> Counter[str]:
    """How many servers are in which status, once none is being built."""
    def look() -> Counter[str] | None:
        found = Counter(server["status"] for server in client.get("/servers/detail")["servers"])
        return None if found["BUILD"] else found

    result: Counter[str] = until(look, 30)
    return result


@pytest.mark.usefixtures("nothing_left")
def test_creates_at_once_never_pass_a_quota(crowd: Client, admin: Client, quota: Callable[..., None]) -> None:
    quota(instances=10, cores=10, ram=100_000)
    body = new_server(crowd)
    answers = at_once(lambda _: crowd.ask("POST", "/servers", body))
    assert counted(answers) == {202: 10, 403: CROWD - 10}
    refused = next(answer.body["forbidden"] for answer in answers if answer.status == 403)
    assert refused["code"] == 403
    assert "instances" in refused["message"] or "cores" in refused["message"]
    assert settled(crowd) == {"ACTIVE": 10}
    assert crowd.get("/limits")["limits"]["absolute"]["totalInstancesUsed"] == 10


@pytest.mark.usefixtures("nothing_left")
def test_several_servers_in_one_request_are_all_within_the_quota_or_as_many_as_fit(
    crowd: Client, quota: Callable[..., None]
) -> None:
    quota(instances=10, cores=100, ram=100_000)
    crowd.refused(403, "POST", "/servers", new_server(crowd, min_count=11, max_count=20))
    assert crowd.get("/servers")["servers"] == []
    answers = at_once(lambda _: crowd.ask("POST", "/servers", new_server(crowd, max_count=4)))
    assert set(counted(answers)) == {202, 403}
    assert settled(crowd) == {"ACTIVE": 10}


@pytest.fixture
def large(admin: Client) -> Iterator[str]:
    """A flavor of which four servers fit on a host, and so twenty into the cloud."""
    hosts = admin.at("2.60").get("/os-hypervisors/detail")["hypervisors"]
    flavor = {"name": "large", "ram": int(hosts[0]["memory_mb"] * 1.0) // 5, "vcpus": 1, "disk": 1}
    made = admin.ok("POST", "/flavors", {"flavor": flavor})["flavor"]["id"]
    yield str(made)
    admin.ok("DELETE", f"/flavors/{made}", status=202)


@pytest.mark.usefixtures("nothing_left")
def test_creates_at_once_never_pass_the_capacity(
    crowd: Client, admin: Client, large: str, quota: Callable[..., None]
) -> None:
    quota(instances=CROWD, cores=CROWD, ram=-1)
    body = new_server(crowd, flavorRef=large)
    assert counted(at_once(lambda _: crowd.ask("POST", "/servers", body))) == {202: CROWD}
    found = settled(crowd)
    assert found["ACTIVE"] + found["ERROR"] == CROWD
    assert found["ACTIVE"] > 0
    assert found["ERROR"] > 0
    assert usage(admin, crowd.project)["VCPU"] == found["ACTIVE"], "a server that did not fit holds nothing"
    for server in crowd.get("/servers/detail")["servers"]:
        if server["status"] == "ERROR":
            assert server["fault"]["message"].startswith("No valid host was found."), server["fault"]
    providers = admin.get("/resource_providers", service="/placement")["resource_providers"]
    for provider in providers:
        path = f"/resource_providers/{provider['uuid']}"
        stock = admin.get(f"{path}/inventories", service="/placement")["inventories"]["MEMORY_MB"]
        used = admin.get(f"{path}/usages", service="/placement")["usages"]["MEMORY_MB"]
        assert used <= (stock["total"] - stock["reserved"]) * stock["allocation_ratio"]


@pytest.mark.usefixtures("nothing_left")
def test_one_address_asked_for_by_all_is_given_to_one(crowd: Client, quota: Callable[..., None]) -> None:
    quota(instances=CROWD, cores=CROWD, ram=-1)
    narrow = crowd.ok("POST", "/v2.0/networks", {"network": {"name": "narrow"}}, service="/networking")
    network = narrow["network"]["id"]
    subnet = {"network_id": network, "ip_version": 4, "cidr": "127.120.0.0/24"}
    crowd.ok("POST", "/v2.0/subnets", {"subnet": subnet}, service="/networking")
    body = new_server(crowd, networks=[{"uuid": network, "fixed_ip": "127.120.0.77"}])
    answers = at_once(lambda _: crowd.ask("POST", "/servers", body))
    assert set(counted(answers)) <= {202, 400, 409}
    found = settled(crowd)
    assert found["ACTIVE"] == 1, found


def test_one_name_is_given_to_one_key_pair(crowd: Client) -> None:
    body = {"keypair": {"name": "k", "public_key": KEY}}
    assert counted(at_once(lambda _: crowd.ask("POST", "/os-keypairs", body))) == {201: 1, 409: CROWD - 1}
    crowd.ok("DELETE", "/os-keypairs/k", status=204)


KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ3bPrgTrUYzN9bBPYcnJQ5gEpLxXdBdgMpr3RZBdzGp me"


def test_one_name_is_given_to_one_flavor_and_one_aggregate(admin: Client) -> None:
    flavor = {"flavor": {"name": "only", "id": "only", "ram": 64, "vcpus": 1, "disk": 1}}
    assert counted(at_once(lambda _: admin.ask("POST", "/flavors", flavor))) == {200: 1, 409: CROWD - 1}
    admin.ok("DELETE", "/flavors/only", status=202)
    aggregate = {"aggregate": {"name": "only"}}
    answers = at_once(lambda _: admin.ask("POST", "/os-aggregates", aggregate))
    assert counted(answers) == {200: 1, 409: CROWD - 1}
    (made,) = admin.get("/os-aggregates")["aggregates"]
    admin.ok("DELETE", f"/os-aggregates/{made['id']}")


def test_a_flavor_that_is_deleted_and_changed_at_once_breaks_nothing(admin: Client) -> None:
    flavor = {"flavor": {"name": "brief", "id": "brief", "ram": 64, "vcpus": 1, "disk": 1}}
    asked: list[tuple[str, str, Any]] = [
        ("POST", "/flavors", flavor),
        ("POST", "/flavors/brief/os-extra_specs", {"extra_specs": {"a": "1"}}),
        ("POST", "/flavors/brief/action", {"addTenantAccess": {"tenant": admin.project}}),
        ("DELETE", "/flavors/brief", None),
    ]
    answers = at_once(lambda number: admin.ask(*asked[number % 4]))
    assert set(counted(answers)) <= {200, 202, 404, 409}
    assert admin.status("DELETE", "/flavors/brief") in (202, 404)


def test_one_name_is_given_to_one_project_and_one_user(admin: Client) -> None:
    values = {"name": "only", "domain_id": "default"}
    projects = at_once(lambda _: admin.ask("POST", "/v3/projects", {"project": values}, service="/identity"))
    users = at_once(lambda _: admin.ask("POST", "/v3/users", {"user": values}, service="/identity"))
    assert counted(projects) == counted(users) == {201: 1, 409: CROWD - 1}


def test_one_server_is_deleted_once_by_all(crowd: Client) -> None:
    made = crowd.ok("POST", "/servers", new_server(crowd), status=202)["server"]["id"]
    answers = at_once(lambda _: crowd.ask("DELETE", f"/servers/{made}"))
    assert set(counted(answers)) <= {204, 404}
    assert counted(answers)[204] >= 1
    until(lambda: crowd.status("GET", f"/servers/{made}") == 404)


def test_one_volume_is_attached_to_one_of_the_servers_that_want_it(crowd: Client) -> None:
    servers = [crowd.ok("POST", "/servers", new_server(crowd), status=202)["server"]["id"] for _ in range(4)]
    assert settled(crowd) == {"ACTIVE": 4}
    volume = crowd.ok("POST", "/v3/volumes", {"volume": {"size": 1}}, service="/volume")["volume"]["id"]
    body = {"volumeAttachment": {"volumeId": volume}}
    answers = at_once(lambda n: crowd.ask("POST", f"/servers/{servers[n % 4]}/os-volume_attachments", body))
    assert counted(answers)[200] == 1
    assert set(counted(answers)) <= {200, 400, 409}
    held = [crowd.get(f"/servers/{server}/os-volume_attachments")["volumeAttachments"] for server in servers]
    assert sum(map(len, held)) == 1
    for server in servers:
        crowd.ok("DELETE", f"/servers/{server}", status=204)
    until(lambda: not crowd.get("/servers")["servers"])
    until(lambda: crowd.get(f"/v3/volumes/{volume}", service="/volume")["volume"]["status"] == "available")
