"""/os-server-groups: policies of each version, members, whose they are, and the quota."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.http.compute.cloud import Client, remove

Make = Callable[..., dict[str, Any]]


@pytest.fixture
def make(demo: Client) -> Iterator[Make]:
    """Makes groups of demo's, and takes them away."""
    made: list[str] = []

    def create(version: str = "2.64", **values: Any) -> dict[str, Any]:
        group = {"name": "g"} | (values or {"policy": "affinity"})
        answer = demo.at(version).ok("POST", "/os-server-groups", {"server_group": group}, status=200)
        made.append(answer["server_group"]["id"])
        return dict(answer["server_group"])

    yield create
    for uuid in made:
        demo.status("DELETE", f"/os-server-groups/{uuid}")


def test_what_a_group_shows_by_version(make: Make, demo: Client) -> None:
    path = f"/os-server-groups/{make(policy='anti-affinity', rules={'max_server_per_host': '3'})['id']}"
    new = demo.at("2.64").get(path)["server_group"]
    assert (new["policy"], new["rules"], new["members"]) == ("anti-affinity", {"max_server_per_host": 3}, [])
    assert (new["project_id"], new["user_id"]) == (demo.project, demo.user)
    assert not {"policies", "metadata"} & set(new)
    old = demo.at("2.12").get(path)["server_group"]
    assert set(old) == {"id", "name", "policies", "members", "metadata"}
    assert (old["policies"], old["metadata"]) == (["anti-affinity"], {})
    assert set(demo.at("2.13").get(path)["server_group"]) == set(old) | {"project_id", "user_id"}


def test_a_group_without_rules_has_an_empty_object(make: Make) -> None:
    assert make()["rules"] == {}


@pytest.mark.parametrize(("version", "group"), [
    ("2.1", {"policies": ["soft-affinity"]}), ("2.15", {"policies": []}), ("2.1", {"policy": "affinity"}),
    ("2.15", {"policies": ["affinity", "anti-affinity"]}), ("2.15", {"policies": ["affinity"], "rules": {}}),
    ("2.64", {"policies": ["affinity"]}), ("2.64", {}), ("2.64", {"policy": "legacy"}),
    ("2.64", {"policy": "affinity", "rules": {"max_server_per_host": 2}}),
    ("2.64", {"policy": "anti-affinity", "rules": {"max_server_per_host": 0}}),
    ("2.64", {"policy": "anti-affinity", "rules": {"other": 1}}), ("2.64", {"name": "", "policy": "affinity"}),
])  # fmt: skip
def test_create_refuses(demo: Client, version: str, group: dict[str, Any]) -> None:
    demo.at(version).refused(400, "POST", "/os-server-groups", {"server_group": {"name": "g"} | group})


def test_a_group_is_its_projects(make: Make, demo: Client, alt: Client, admin: Client, reader: Client) -> None:
    made = make()
    path = f"/os-server-groups/{made['id']}"
    alt.refused(403, "GET", path)
    alt.refused(403, "DELETE", path)
    reader.refused(403, "DELETE", path)
    assert reader.get(path)["server_group"]["id"] == made["id"]
    assert admin.get(path)["server_group"]["id"] == made["id"]
    assert made["id"] in ids_of(reader)
    assert made["id"] not in ids_of(alt) + ids_of(admin) + ids_of(alt, "?all_projects=true")
    assert made["id"] in ids_of(admin, "?all_projects=anything")
    demo.ok("DELETE", path, status=204)
    demo.refused(404, "GET", path)
    demo.refused(404, "GET", "/os-server-groups/abc")


def ids_of(client: Client, query: str = "") -> list[str]:
    return [group["id"] for group in client.get(f"/os-server-groups{query}")["server_groups"]]


def test_lists_are_cut_by_offset_and_limit(make: Make, demo: Client) -> None:
    first, second, third = (make()["id"] for _ in range(3))
    every = ids_of(demo)
    assert every[-3:] == [first, second, third]
    assert ids_of(demo, f"?offset={len(every) - 2}&limit=1") == [second]
    assert ids_of(demo, "?limit=0") == every
    demo.refused(400, "GET", "/os-server-groups?offset=-1")
    demo.at("2.75").refused(400, "GET", "/os-server-groups?marker=x")


def test_members_are_the_servers_that_are_there(make: Make, demo: Client) -> None:
    group = make(policy="affinity")["id"]
    image = demo.get("/v2/images", service="/image")["images"][0]["id"]
    body = {"server": {"name": "m", "flavorRef": "42", "imageRef": image, "networks": "none"},
            "os:scheduler_hints": {"group": group}}  # fmt: skip
    server = demo.at("2.37").ok("POST", "/servers", body)["server"]["id"]
    path = f"/os-server-groups/{group}"
    assert demo.get(path)["server_group"]["members"] == [server]
    remove(demo, server)
    assert demo.get(path)["server_group"]["members"] == []


def test_the_quota_counts_groups_and_comes_before_the_rules(make: Make, demo: Client, admin: Client) -> None:
    make()
    count = len(ids_of(demo))
    admin.ok("PUT", f"/os-quota-sets/{demo.project}", {"quota_set": {"server_groups": count}})
    bad = {"server_group": {"name": "g", "policy": "affinity", "rules": {"max_server_per_host": 2}}}
    assert "server-groups" in demo.at("2.64").refused(403, "POST", "/os-server-groups", bad)
    admin.ok("DELETE", f"/os-quota-sets/{demo.project}", status=202)
    make()


def test_a_server_needs_a_group_of_its_project(make: Make, alt: Client) -> None:
    group = make()["id"]
    image = alt.get("/v2/images", service="/image")["images"][0]["id"]
    body = {"server": {"name": "m", "flavorRef": "42", "imageRef": image, "networks": "none"},
            "os:scheduler_hints": {"group": group}}  # fmt: skip
    alt.at("2.37").refused(400, "POST", "/servers", body)
