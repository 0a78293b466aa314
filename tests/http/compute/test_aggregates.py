"""/os-aggregates: hosts in groups, groups as zones, and the mirror in placement."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.http.compute.cloud import Client, boot, remove

HOST, OTHER_HOST = "sim-0003", "sim-0004"

Make = Callable[..., dict[str, Any]]


@pytest.fixture
def make(admin: Client) -> Iterator[Make]:
    """Makes aggregates, and takes them away with their hosts."""
    made: list[int] = []

    def create(name: str, **values: Any) -> dict[str, Any]:
        answer: dict[str, Any] = admin.at("2.41").ok("POST", "/os-aggregates", {"aggregate": {"name": name} | values})
        made.append(answer["aggregate"]["id"])
        return dict(answer["aggregate"])

    yield create
    for number in made:
        shown = admin.ask("GET", f"/os-aggregates/{number}")
        for host in shown.body["aggregate"]["hosts"] if shown.status == 200 else ():
            act(admin, number, "remove_host", host=host)
        admin.status("DELETE", f"/os-aggregates/{number}")


def act(client: Client, number: int, action: str, **values: Any) -> Any:
    return client.ok("POST", f"/os-aggregates/{number}/action", {action: values}, status=200)


def refused(client: Client, status: int, number: object, action: str, **values: Any) -> str:
    return client.refused(status, "POST", f"/os-aggregates/{number}/action", {action: values})


def provider(admin: Client, host: str) -> str:
    found = admin.get(f"/resource_providers?name={host}", service="/placement")
    return str(found["resource_providers"][0]["uuid"])


def mirrored(admin: Client, host: str) -> list[str]:
    path = f"/resource_providers/{provider(admin, host)}/aggregates"
    return list(admin.get(path, service="/placement", OpenStack_API_Version="placement 1.19")["aggregates"])


def test_the_answer_of_create_has_neither_hosts_nor_metadata(make: Make, admin: Client) -> None:
    made = make("fresh", availability_zone="z-fresh")
    assert set(made) == {"id", "uuid", "name", "availability_zone", "created_at", "updated_at", "deleted_at", "deleted"}
    shown = admin.get(f"/os-aggregates/{made['id']}")["aggregate"]
    assert (shown["hosts"], shown["metadata"]) == ([], {"availability_zone": "z-fresh"})
    assert "uuid" not in shown  # 2.41
    assert shown in admin.get("/os-aggregates")["aggregates"]


@pytest.mark.parametrize("values", [
    {"name": ""}, {"name": " a"}, {"name": "a" * 256}, {"name": 3}, {}, {"name": "a", "hosts": []},
    {"name": "a", "availability_zone": "a:b"}, {"name": "a", "availability_zone": ""},
])  # fmt: skip
def test_create_refuses(admin: Client, values: dict[str, Any]) -> None:
    admin.refused(400, "POST", "/os-aggregates", {"aggregate": values})


def test_a_name_is_given_once(make: Make, admin: Client) -> None:
    make("taken")
    other = make("free")
    admin.refused(409, "POST", "/os-aggregates", {"aggregate": {"name": "taken"}})
    admin.refused(409, "PUT", f"/os-aggregates/{other['id']}", {"aggregate": {"name": "taken"}})
    admin.ok("PUT", f"/os-aggregates/{other['id']}", {"aggregate": {"name": "free"}})


@pytest.mark.parametrize(("number", "status"), [("abc", 400), ("-1", 400), ("99999", 404), ("9" * 30, 404)])
def test_an_id_is_a_number_that_is_there(admin: Client, number: str, status: int) -> None:
    path = f"/os-aggregates/{number}"
    admin.refused(status, "GET", path)
    admin.refused(status, "PUT", path, {"aggregate": {"name": "a"}})
    admin.refused(status, "DELETE", path)
    refused(admin, status, number, "add_host", host=HOST)
    refused(admin, status, number, "remove_host", host=HOST)
    refused(admin, status, number, "set_metadata", metadata={})


def test_the_policy_is_asked_before_anything_is_looked_for(demo: Client) -> None:
    demo.refused(403, "GET", "/os-aggregates")
    demo.refused(403, "GET", "/os-aggregates/99999")
    refused(demo, 403, 99999, "add_host", host="nowhere")


def test_update_strips_and_needs_something(make: Make, admin: Client) -> None:
    path = f"/os-aggregates/{make('old')['id']}"
    changed = admin.ok("PUT", path, {"aggregate": {"name": " new ", "availability_zone": " z-new "}})["aggregate"]
    assert (changed["name"], changed["availability_zone"]) == ("new", "z-new")
    assert changed["updated_at"]
    admin.refused(400, "PUT", path, {"aggregate": {}})
    admin.refused(400, "PUT", path, {"aggregate": {"availability_zone": None}})


def test_metadata_is_merged_and_null_removes_a_key(make: Make, admin: Client) -> None:
    number = make("meta")["id"]
    act(admin, number, "set_metadata", metadata={"ssd": "true", "gpu": "no"})
    changed = act(admin, number, "set_metadata", metadata={"ssd": None, "gpu": "yes", "absent": None})
    assert changed["aggregate"]["metadata"] == {"gpu": "yes"}
    refused(admin, 400, number, "set_metadata", metadata={"availability_zone": ""})
    refused(admin, 400, number, "set_metadata", metadata={"k" * 256: "v"})
    refused(admin, 400, number, "set_metadata", metadata={"k": "v" * 256})


def test_hosts_come_and_go_in_placement_too(make: Make, admin: Client) -> None:
    made = make("members")
    changed = act(admin, made["id"], "add_host", host=HOST)["aggregate"]
    assert changed["hosts"] == [HOST]
    assert made["uuid"] in mirrored(admin, HOST)
    refused(admin, 409, made["id"], "add_host", host=HOST)
    admin.refused(400, "DELETE", f"/os-aggregates/{made['id']}")
    assert act(admin, made["id"], "remove_host", host=HOST)["aggregate"]["hosts"] == []
    assert made["uuid"] not in mirrored(admin, HOST)
    refused(admin, 404, made["id"], "remove_host", host=HOST)
    assert admin.ok("DELETE", f"/os-aggregates/{made['id']}", status=200) is None
    admin.refused(404, "GET", f"/os-aggregates/{made['id']}")


def test_an_unknown_host_is_told_before_an_unknown_aggregate(admin: Client) -> None:
    assert "nowhere" in refused(admin, 404, 99999, "add_host", host="nowhere")


def test_a_host_is_in_one_zone_only(make: Make, admin: Client) -> None:
    one, two = make("one", availability_zone="z1"), make("two", availability_zone="z2")
    plain = make("plain")
    act(admin, one["id"], "add_host", host=HOST)
    refused(admin, 409, two["id"], "add_host", host=HOST)
    act(admin, plain["id"], "add_host", host=HOST)
    refused(admin, 400, plain["id"], "set_metadata", metadata={"availability_zone": "z2"})
    admin.refused(400, "PUT", f"/os-aggregates/{plain['id']}", {"aggregate": {"availability_zone": "z2"}})
    act(admin, plain["id"], "set_metadata", metadata={"availability_zone": "z1"})


def test_a_zone_takes_servers_and_they_never_leave_it(make: Make, admin: Client) -> None:
    number = make("home", availability_zone="z-home")["id"]
    make("elsewhere", availability_zone="z-else")
    act(admin, number, "add_host", host=OTHER_HOST)
    server = boot(admin, availability_zone="z-home")
    assert server["OS-EXT-SRV-ATTR:host"] == OTHER_HOST
    assert server["OS-EXT-AZ:availability_zone"] == "z-home"
    refused(admin, 409, number, "remove_host", host=OTHER_HOST)
    refused(admin, 400, number, "set_metadata", metadata={"availability_zone": "z-else"})
    admin.refused(400, "PUT", f"/os-aggregates/{number}", {"aggregate": {"availability_zone": "z-else"}})
    act(admin, number, "set_metadata", metadata={"availability_zone": "z-home", "more": "x"})
    remove(admin, server["id"])
    act(admin, number, "remove_host", host=OTHER_HOST)


def test_a_host_with_servers_joins_no_zone_but_its_own(make: Make, admin: Client) -> None:
    server = boot(admin, availability_zone=f"nova:{HOST}")
    number = make("late", availability_zone="z-late")["id"]
    refused(admin, 409, number, "add_host", host=HOST)
    act(admin, make("zoneless")["id"], "add_host", host=HOST)
    remove(admin, server["id"])
    act(admin, number, "add_host", host=HOST)
