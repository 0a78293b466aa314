"""A quota stops a user, says which one it is and what raises it; raised, it lets the user go on."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.databases import Places
from tests.scenario.stage import boot, create, flavor, image, stage

VERSION = "2.96"


@pytest.mark.parametrize(
    ("resource", "limit", "flavor_name"),
    [("instances", 1, "m1.nano"), ("cores", 2, "m1.medium"), ("ram", 512, "m1.tiny")],
)
def test_a_quota_names_itself_and_what_raises_it(
    tmp_path: Path, places: Places, resource: str, limit: int, flavor_name: str
) -> None:
    with stage(tmp_path / "state", places) as here:
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
