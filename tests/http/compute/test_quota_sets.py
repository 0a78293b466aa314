"""/os-quota-sets, /os-quota-class-sets and /limits: the same numbers in three forms."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.http.compute.cloud import Client, boot, remove

LASTING = {"cores", "instances", "key_pairs", "metadata_items", "ram"}
GROUPS = {"server_groups", "server_group_members"}
NETWORK = {"fixed_ips", "floating_ips", "security_groups", "security_group_rules"}
FILES = {"injected_files", "injected_file_content_bytes", "injected_file_path_bytes"}


@pytest.fixture
def path(admin: Client, demo: Client) -> Iterator[str]:
    """Demo's quotas, which are the defaults again afterwards."""
    yield f"/os-quota-sets/{demo.project}"
    admin.ok("DELETE", f"/os-quota-sets/{demo.project}", status=202)
    admin.ok("DELETE", f"/os-quota-sets/{demo.project}?user_id={demo.user}", status=202)


def change(admin: Client, path: str, **values: Any) -> dict[str, Any]:
    return dict(admin.ok("PUT", path, {"quota_set": values}, status=200)["quota_set"])


@pytest.mark.parametrize(("version", "keys"), [
    ("2.35", LASTING | GROUPS | NETWORK | FILES), ("2.36", LASTING | GROUPS | FILES), ("2.57", LASTING | GROUPS),
])  # fmt: skip
def test_resources_of_a_quota_set_by_version(
    admin: Client, demo: Client, path: str, version: str, keys: set[str]
) -> None:
    for tail in ("", "/detail", "/defaults"):
        assert set(demo.at(version).get(path + tail)["quota_set"]) == keys | {"id"}
    assert set(change(admin.at(version), path, cores=21)) == keys
    if version != "2.35":
        admin.at(version).refused(400, "PUT", path, {"quota_set": {"floating_ips": 1}})


@pytest.mark.parametrize(("version", "keys"), [
    ("2.49", LASTING | NETWORK | FILES), ("2.50", LASTING | GROUPS | FILES), ("2.57", LASTING | GROUPS),
])  # fmt: skip
def test_resources_of_a_class_by_version(admin: Client, version: str, keys: set[str]) -> None:
    client = admin.at(version)
    assert set(client.get("/os-quota-class-sets/default")["quota_class_set"]) == keys | {"id"}
    body = {"quota_class_set": {"metadata_items": 128}}
    assert set(client.ok("PUT", "/os-quota-class-sets/default", body)["quota_class_set"]) == keys


def test_a_project_s_own_limits_come_before_the_class_s(admin: Client, demo: Client, path: str) -> None:
    admin.ok("PUT", "/os-quota-class-sets/default", {"quota_class_set": {"cores": "40", "injected_file_path_bytes": 9}})
    shown = demo.get(path)["quota_set"]
    assert (shown["cores"], shown["injected_file_path_bytes"]) == (40, 9)
    assert change(admin, path, cores=50, injected_file_path_bytes=10)["cores"] == 50
    assert demo.get(path)["quota_set"]["injected_file_path_bytes"] == 10
    assert demo.get(path + "/defaults")["quota_set"]["cores"] == 40
    assert demo.get("/limits")["limits"]["absolute"]["maxTotalCores"] == 50
    admin.ok("DELETE", path, status=202)
    assert demo.get(path)["quota_set"]["cores"] == 40
    defaults = {"quota_class_set": {"cores": 20, "injected_file_path_bytes": 255}}
    admin.ok("PUT", "/os-quota-class-sets/default", defaults)


def test_usage_is_shown_and_is_the_least_limit(admin: Client, demo: Client, path: str) -> None:
    server = boot(demo)
    detail = demo.get(path + "/detail")["quota_set"]
    assert detail["instances"] == {"limit": 10, "in_use": 1, "reserved": 0}
    assert detail["ram"]["in_use"] == 192
    absolute = demo.get("/limits")["limits"]["absolute"]
    assert (absolute["totalInstancesUsed"], absolute["totalRAMUsed"]) == (1, 192)
    admin.refused(400, "PUT", path, {"quota_set": {"ram": 100}})
    assert change(admin, path, ram=100, force=True)["ram"] == 100
    assert "ram" in demo.at("2.37").refused(403, "POST", "/servers", {"server": {
        "name": "s", "flavorRef": "42", "imageRef": server["image"]["id"], "networks": "none"}})  # fmt: skip
    remove(demo, server["id"])


@pytest.mark.parametrize("values", [
    {"cores": -2}, {"cores": 2147483648}, {"cores": "many"}, {"cores": None}, {"apples": 1}, {"force": "x"},
])  # fmt: skip
def test_limits_that_are_none(admin: Client, path: str, values: dict[str, Any]) -> None:
    admin.refused(400, "PUT", path, {"quota_set": values})
    admin.refused(400, "PUT", "/os-quota-class-sets/default", {"quota_class_set": values})


def test_a_user_has_at_most_what_the_project_has(admin: Client, demo: Client, path: str) -> None:
    mine = f"{path}?user_id={demo.user}"
    assert change(admin, mine, instances=3)["instances"] == 3
    assert demo.get(mine)["quota_set"]["instances"] == 3
    assert demo.get(path)["quota_set"]["instances"] == 10
    for limit in (11, -1):
        admin.refused(400, "PUT", mine, {"quota_set": {"instances": limit}})
    admin.ok("DELETE", mine, status=202)
    assert demo.get(mine)["quota_set"]["instances"] == 10


def test_who_may_look_and_change(admin: Client, demo: Client, alt: Client, reader: Client, path: str) -> None:
    assert reader.get(path)["quota_set"]["id"] == demo.project
    alt.refused(403, "GET", path)
    alt.refused(403, "GET", path + "/detail")
    assert alt.get(path + "/defaults")
    demo.refused(403, "PUT", path, {"quota_set": {"cores": 100}})
    demo.refused(403, "DELETE", path)
    demo.refused(403, "GET", "/os-quota-class-sets/default")
    demo.refused(403, "PUT", "/os-quota-class-sets/default", {"quota_class_set": {"cores": 1}})


def test_a_project_must_be_one(admin: Client) -> None:
    for tail in ("", "/detail", "/defaults"):
        admin.refused(400, "GET", "/os-quota-sets/no-such-project" + tail)
    admin.refused(400, "PUT", "/os-quota-sets/no-such-project", {"quota_set": {"cores": 1}})


def test_class_names_have_an_end(admin: Client) -> None:
    body = {"quota_class_set": {"cores": 1}}
    admin.refused(400, "PUT", "/os-quota-class-sets/" + "c" * 256, body)
    assert admin.ok("PUT", "/os-quota-class-sets/gold", body)["quota_class_set"]["cores"] == 1
    assert admin.get("/os-quota-class-sets/gold")["quota_class_set"]["id"] == "gold"
    assert admin.get("/os-quota-class-sets/default")["quota_class_set"]["cores"] == 20


def test_limits_by_version(demo: Client) -> None:
    oldest = set(demo.get("/limits")["limits"]["absolute"])
    gone = {"2.36": {"maxSecurityGroups", "maxSecurityGroupRules", "maxTotalFloatingIps", "totalFloatingIpsUsed",
                     "totalSecurityGroupsUsed"}, "2.39": {"maxImageMeta"},
            "2.57": {"maxPersonality", "maxPersonalitySize"}}  # fmt: skip
    left = oldest
    for version, names in gone.items():
        assert names <= left
        left = left - names
        assert set(demo.at(version).get("/limits")["limits"]["absolute"]) == left
    assert demo.get("/limits")["limits"]["rate"] == []


def test_limits_of_another_project_are_the_administrators_to_see(admin: Client, demo: Client, alt: Client) -> None:
    alt.refused(403, "GET", f"/limits?tenant_id={demo.project}")
    assert alt.get(f"/limits?tenant_id={alt.project}")
    assert admin.get(f"/limits?tenant_id={demo.project}")
    demo.at("2.75").refused(400, "GET", "/limits?reserved=1")
