"""A quota stops a user, says which one it is and what raises it; raised, it lets the user go on."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.databases import Places
from tests.scenario.stage import Stage, boot, create, delete, flavor, image, stage

VERSION = "2.96"


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory, places: Places) -> Iterator[Stage]:
    with stage(tmp_path_factory.mktemp("quota") / "state", places) as made:
        yield made


@pytest.mark.parametrize(
    ("resource", "limit", "flavor_name"),
    [("instances", 1, "m1.nano"), ("cores", 2, "m1.medium"), ("ram", 512, "m1.tiny")],
)
def test_a_quota_names_itself_and_what_raises_it(
    here: Stage, resource: str, limit: int, flavor_name: str
) -> None:
    demo = here.demo.at(VERSION)
    quota = f"/os-quota-sets/{demo.project}"
    here.admin.ok("PUT", quota, {"quota_set": {resource: limit}})
    wanted = {"flavorRef": flavor(demo, flavor_name), "networks": "none"}
    boot(demo, **wanted)
    body = {"server": {"name": "over", "imageRef": image(demo)} | wanted}
    said = demo.refused(403, "POST", "/servers", body)
    assert f"Quota exceeded for {resource}" in said
    assert f"but already used {limit} of {limit} {resource}" in said
    (command,) = re.findall(r"openstack quota set --(\w+) <number> (\w+)", said)
    assert command == (resource, demo.project)
    assert len(demo.get("/servers")["servers"]) == 1
    here.admin.ok("PUT", quota, {"quota_set": {resource: 2 * limit}})
    create(demo, **wanted)
    delete(demo, *(row["id"] for row in demo.get("/servers")["servers"]))
    here.admin.ok("DELETE", quota)
