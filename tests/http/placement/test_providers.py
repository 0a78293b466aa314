"""Providers, their trees, inventories, traits, classes and aggregates through HTTP."""

from __future__ import annotations

import pytest

from kilonova.core import ids
from tests.http.placement.conftest import Client

AGG_1, AGG_2 = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"


def test_the_version_document_needs_no_token(client: Client) -> None:
    found = client.nobody()("GET", "/")
    assert found.status == 200
    version = found.json["versions"][0]
    assert (version["id"], version["min_version"], version["max_version"]) == ("v1.0", "1.0", "1.39")
    assert client.nobody()("GET", "").status == 200


def test_everything_else_needs_one(client: Client) -> None:
    for method, path in (("GET", "/resource_providers"), ("PUT", "/allocations/x"), ("GET", "/nowhere")):
        assert client.nobody()(method, path).status == 401


@pytest.mark.parametrize("roles", [[], ["member", "reader"], ["manager"]])
def test_whoever_is_neither_admin_nor_service_is_refused_before_the_body_is_read(
    client: Client, roles: list[str]
) -> None:
    user = client.by(roles=roles, project_id="p")
    assert user("GET", "/resource_providers").status == 403
    assert user("POST", "/resource_providers", {"cow": 1}).status == 403
    assert client.by(roles=["service"])("GET", "/resource_providers").status == 200


def test_a_system_scoped_token_is_refused(client: Client) -> None:
    assert client.by(roles=["admin"], system_scope="all")("GET", "/resource_providers").status == 403


def test_versions_are_negotiated(client: Client) -> None:
    for text, status in (("1.39", 200), ("latest", 200), ("1.40", 406), ("0.5", 406), ("2.1", 406), ("cow", 400)):
        found = client.at(text)("GET", "/resource_providers")
        assert found.status == status, text
    assert client.at("latest")("GET", "/").headers["openstack-api-version"] == "placement 1.39"
    assert client.at(None)("GET", "/").headers["openstack-api-version"] == "placement 1.0"
    refused = client.at("1.99")("GET", "/").error
    assert (refused["min_version"], refused["max_version"]) == ("1.0", "1.39")


def test_a_created_provider_is_answered_from_1_20_on(client: Client) -> None:
    before = client.at("1.19")("POST", "/resource_providers", {"name": "a"})
    assert (before.status, before.body) == (201, b"")
    assert "content-type" not in before.headers
    after = client.at("1.20")("POST", "/resource_providers", {"name": "b"})
    assert after.status == 200
    assert after.json["generation"] == 0
    uuid = after.json["uuid"]
    assert after.headers["location"] == f"http://localhost/placement/resource_providers/{uuid}"
    assert after.json["links"][0] == {"rel": "self", "href": f"/placement/resource_providers/{uuid}"}


@pytest.mark.parametrize(
    ("version", "keys", "links"),
    [("1.0", 4, 3), ("1.1", 4, 4), ("1.6", 4, 5), ("1.11", 4, 6), ("1.13", 4, 6), ("1.14", 6, 6), ("1.39", 6, 6)],
)
def test_a_provider_has_the_keys_and_links_of_its_version(client: Client, version: str, keys: int, links: int) -> None:
    uuid = client.provider("a")
    found = client.at(version)("GET", f"/resource_providers/{uuid}").json
    assert (len(found), len(found["links"])) == (keys, links)


def test_dates_stand_on_bodies_from_1_15_on(client: Client) -> None:
    uuid = client.provider("a", VCPU=1)
    for path in ("", "/inventories", "/usages", "/aggregates", "/traits", "/allocations"):
        old = client.at("1.14")("GET", f"/resource_providers/{uuid}{path}")
        new = client.at("1.15")("GET", f"/resource_providers/{uuid}{path}")
        assert "last-modified" not in old.headers
        assert new.headers["last-modified"].endswith("GMT")
        assert new.headers["cache-control"] == "no-cache"


def test_names_and_uuids_are_unique_and_each_says_so(client: Client) -> None:
    uuid = client.provider("a")
    name = client("POST", "/resource_providers", {"name": "a"})
    assert name.status == 409
    assert name.error["code"] == "placement.duplicate_name"
    assert "Conflicting resource provider name:" in name.error["detail"]
    same = client("POST", "/resource_providers", {"name": "b", "uuid": uuid})
    assert same.status == 409
    assert same.error["code"] == "placement.duplicate_name"
    assert "Conflicting resource provider name:" not in same.error["detail"]
    other = client.provider("c")
    assert client("PUT", f"/resource_providers/{other}", {"name": "a"}).error["code"] == "placement.duplicate_name"


def test_codes_come_with_1_23(client: Client) -> None:
    assert "code" not in client.at("1.22")("GET", f"/resource_providers/{ids.new_uuid()}").error
    assert client.at("1.23")("GET", f"/resource_providers/{ids.new_uuid()}").error["code"] == "placement.undefined_code"


def test_a_tree_is_built_moved_and_taken_down(client: Client) -> None:
    root, other = client.provider("root"), client.provider("other")
    child = client.provider("child", root)
    grandchild = client.provider("grandchild", child)
    assert client("GET", f"/resource_providers/{grandchild}").json["root_provider_uuid"] == root
    tree = client("GET", f"/resource_providers?in_tree={child}").json["resource_providers"]
    assert [one["name"] for one in tree] == ["root", "child", "grandchild"]
    body = {"name": "child", "parent_provider_uuid": other}
    assert client.at("1.36")("PUT", f"/resource_providers/{child}", body).status == 400
    assert client("PUT", f"/resource_providers/{child}", body).status == 200
    assert client("GET", f"/resource_providers/{grandchild}").json["root_provider_uuid"] == other
    loop = client("PUT", f"/resource_providers/{child}", {"name": "child", "parent_provider_uuid": grandchild})
    assert loop.status == 400
    refused = client("DELETE", f"/resource_providers/{child}")
    assert refused.status == 409
    assert refused.error["code"] == "placement.resource_provider.cannot_delete_parent"
    for uuid in (grandchild, child, other, root):
        assert client("DELETE", f"/resource_providers/{uuid}").status == 204
    assert client("GET", "/resource_providers").json == {"resource_providers": []}


def test_a_child_becomes_a_root_from_1_37_on(client: Client) -> None:
    root = client.provider("root")
    child = client.provider("child", root)
    body = {"name": "child", "parent_provider_uuid": None}
    assert client.at("1.36")("PUT", f"/resource_providers/{child}", body).status == 400
    assert client("PUT", f"/resource_providers/{child}", body).json["root_provider_uuid"] == child


@pytest.mark.parametrize(
    "body",
    [
        {}, {"name": ""}, {"name": "x" * 201}, {"name": 5}, {"name": None}, [], 7,
        {"name": "x", "uuid": "cow"}, {"name": "x", "cow": 1}, {"name": "x", "parent_provider_uuid": "cow"},
        {"name": "x", "parent_provider_uuid": "99999999-9999-4999-8999-999999999999"},
        b"{", b"\xff", b'{"name": "x"} trailing',
    ],
)  # fmt: skip
def test_a_bad_provider_is_refused_and_nothing_is_made(client: Client, body: object) -> None:
    found = client("POST", "/resource_providers", body)
    assert found.status == 400
    assert found.error["detail"]
    assert client("GET", "/resource_providers").json == {"resource_providers": []}


def test_a_provider_that_is_not_there_counts_more_than_what_is_wrong_with_the_body(client: Client) -> None:
    nowhere = "/resource_providers/99999999-9999-4999-8999-999999999999"
    for method, path in (("PUT", ""), ("PUT", "/aggregates"), ("PUT", "/inventories"), ("POST", "/inventories"),
                         ("PUT", "/inventories/VCPU")):  # fmt: skip
        assert client(method, nowhere + path, b"{").status == 404
        assert client.by(roles=["member"])(method, nowhere + path, b"{").status == 403


def test_what_is_wrong_is_said_in_one_line(client: Client) -> None:
    aggregates = {"aggregates": ["cow"], "resource_provider_generation": 0}
    for method, path, body in (
        ("PUT", f"/resource_providers/{client.provider('host')}/aggregates", aggregates),
        ("PUT", "/resource_classes/cow", None),
        ("POST", "/resource_classes", {"name": "cow"}),
    ):
        said = client(method, path, body).error["detail"]
        assert said.startswith("JSON does not validate: 'cow'")
        assert "\n" not in said


def test_a_body_is_ignored_where_none_belongs(client: Client) -> None:
    assert client("GET", "/resource_providers", b"{").status == 200


def test_wrong_methods_paths_types_and_accepts(client: Client) -> None:
    assert client("POST", "/resource_providers", b"").status == 415
    assert client("POST", "/resource_providers", b"", CONTENT_TYPE="application/json").status == 400
    assert client("GET", "/nowhere", OPENSTACK_API_VERSION="placement 1.400").status == 406
    wrong = client("DELETE", "/resource_providers")
    assert wrong.status == 405
    assert set(wrong.headers["allow"].split(", ")) == {"GET", "POST"}
    assert client("GET", "/resource_providers/").status == 404
    assert client("GET", "/nowhere").status == 404
    assert client("POST", "/resource_providers", {"name": "x"}, CONTENT_TYPE="text/plain").status == 415
    assert client("POST", "/resource_providers", {"name": "x"}, CONTENT_TYPE="").status == 400
    assert client("GET", "/resource_providers", ACCEPT="text/plain").status == 406
    page = client("DELETE", f"/resource_providers/{ids.new_uuid()}", ACCEPT="text/html")
    assert page.status == 404
    assert page.headers["content-type"].startswith("text/html")


def test_the_list_filters(client: Client) -> None:
    a = client.provider("a", VCPU={"total": 8, "max_unit": 4}, MEMORY_MB=1024)
    b = client.provider("b", VCPU=2)
    c = client.provider("c")
    client.traits(a, "HW_CPU_X86_AVX2", "CUSTOM_GOLD")
    client.traits(b, "HW_CPU_X86_AVX2")
    client.aggregates(a, AGG_1)
    client.aggregates(b, AGG_1, AGG_2)

    def names(query: str) -> list[str]:
        found = client("GET", f"/resource_providers?{query}")
        assert found.status == 200, found.body
        return [one["name"] for one in found.json["resource_providers"]]

    assert names("") == ["a", "b", "c"]
    assert names("name=b") == ["b"]
    assert names(f"uuid={a}") == ["a"]
    assert names(f"uuid={a}&name=b") == []
    assert names(f"in_tree={c}") == ["c"]
    assert names("resources=VCPU:2") == ["a", "b"]
    assert names("resources=VCPU:2,MEMORY_MB:1024") == ["a"]
    assert names("resources=VCPU:5") == []
    assert names("required=HW_CPU_X86_AVX2") == ["a", "b"]
    assert names("required=HW_CPU_X86_AVX2,!CUSTOM_GOLD") == ["b"]
    assert names("required=in:CUSTOM_GOLD,HW_CPU_X86_SSE") == ["a"]
    assert names(f"member_of={AGG_1}") == ["a", "b"]
    assert names(f"member_of={AGG_1}&member_of={AGG_2}") == ["b"]
    assert names(f"member_of=!{AGG_2}") == ["a", "c"]
    assert names(f"member_of=in:{AGG_2},{AGG_1}&resources=VCPU:3") == ["a"]
    assert names(f"in_tree={ids.new_uuid()}") == []


@pytest.mark.parametrize(
    "query",
    [
        "cow=1", "uuid=cow", "in_tree=cow", "resources=VCPU", "resources=VCPU:0", "resources=VCPU:x", "resources=",
        "resources=COW:1", "resources=VCPU:1,", "required=NO_SUCH", "required=", "required=A,,B",
        "required=HW_CPU_X86_AVX2,!HW_CPU_X86_AVX2", "member_of=cow", f"member_of={AGG_1},{AGG_2}",
        f"member_of=in:!{AGG_1}", "required=in:!HW_CPU_X86_AVX2",
    ],
)  # fmt: skip
def test_a_bad_filter_is_refused(client: Client, query: str) -> None:
    assert client("GET", f"/resource_providers?{query}").status == 400


@pytest.mark.parametrize(
    ("key", "since"),
    [("member_of=" + AGG_1, "1.3"), ("resources=VCPU:1", "1.4"), ("in_tree=" + AGG_1, "1.14"),
     ("required=HW_CPU_X86_AVX2", "1.18")],
)  # fmt: skip
def test_a_filter_that_is_newer_than_the_version_is_unknown(client: Client, key: str, since: str) -> None:
    before = f"1.{int(since[2:]) - 1}"
    assert client.at(since)("GET", f"/resource_providers?{key}").status == 200
    assert client.at(before)("GET", f"/resource_providers?{key}").status == 400


def test_inventories_are_compared_and_counted(client: Client) -> None:
    uuid = client.provider("a", VCPU=8)
    path = f"/resource_providers/{uuid}/inventories"
    stale = client("PUT", path, {"inventories": {}, "resource_provider_generation": 0})
    assert (stale.status, stale.error["code"]) == (409, "placement.concurrent_update")
    full = client("GET", path + "/VCPU").json
    assert full == {"total": 8, "reserved": 0, "min_unit": 1, "max_unit": 2147483647, "step_size": 1,
                    "allocation_ratio": 1.0, "resource_provider_generation": 1}  # fmt: skip
    added = client("POST", path, {"resource_class": "DISK_GB", "total": 10})
    assert (added.status, added.json["resource_provider_generation"]) == (201, 2)
    assert added.headers["location"].endswith("/inventories/DISK_GB")
    again = client("POST", path, {"resource_class": "DISK_GB", "total": 10})
    assert (again.status, again.error["code"]) == (409, "placement.concurrent_update")
    changed = client("PUT", path + "/DISK_GB", {"total": 20, "resource_provider_generation": 2})
    assert changed.json["resource_provider_generation"] == 3
    assert client("PUT", path + "/MEMORY_MB", {"total": 20, "resource_provider_generation": 3}).status == 400
    assert client("DELETE", path + "/DISK_GB").status == 204
    assert client("DELETE", path + "/DISK_GB").status == 404
    assert client("DELETE", path).status == 204
    assert client("GET", path).json == {"inventories": {}, "resource_provider_generation": 5}


def test_an_inventory_in_use_stays(client: Client) -> None:
    uuid = client.provider("a", VCPU=8)
    assert client.claim(ids.new_uuid(), **{uuid: {"VCPU": 1}}).status == 204
    path = f"/resource_providers/{uuid}/inventories"
    body = {"inventories": {"DISK_GB": {"total": 1}}, "resource_provider_generation": 2}
    for found in (client("PUT", path, body), client("DELETE", path)):
        assert (found.status, found.error["code"]) == (409, "placement.inventory.inuse")
    one = client("DELETE", path + "/VCPU")
    assert (one.status, one.error["code"]) == (409, "placement.concurrent_update")
    refused = client("DELETE", f"/resource_providers/{uuid}")
    assert (refused.status, refused.error["code"]) == (409, "placement.resource_provider.inuse")
    assert client.generation(uuid) == 2


@pytest.mark.parametrize(
    ("record", "old", "new"),
    [({"total": 5, "reserved": 6}, 400, 400), ({"total": 5, "reserved": 5}, 400, 200),
     ({"total": 5, "allocation_ratio": -1.0}, 400, 400), ({"total": 5, "allocation_ratio": 0}, 400, 200),
     ({"total": 0}, 400, 400), ({"total": 5, "reserved": -1}, 400, 400), ({"total": 2147483648}, 400, 400),
     ({"total": "5"}, 400, 400), ({"total": 5, "cow": 1}, 400, 400), ({}, 400, 400), ({"total": 5.5}, 400, 400),
     ({"total": True}, 400, 400), ({"total": 5, "allocation_ratio": "1"}, 400, 400),
     ({"total": 5, "min_unit": 9}, 200, 200)],
)  # fmt: skip
def test_what_an_inventory_may_be(client: Client, record: dict[str, object], old: int, new: int) -> None:
    for version, status in (("1.25", old), ("1.26", new)):
        uuid = client.provider(version)
        body = {"inventories": {"VCPU": record}, "resource_provider_generation": 0}
        assert client.at(version)("PUT", f"/resource_providers/{uuid}/inventories", body).status == status


def test_traits_are_made_given_and_taken(client: Client) -> None:
    uuid = client.provider("a")
    assert client("PUT", "/traits/CUSTOM_GOLD").status == 201
    assert client("PUT", "/traits/CUSTOM_GOLD").status == 204
    for bad in ("GOLD", "CUSTOM_gold", "CUSTOM_", "HW_CPU_X86_AVX2", "CUSTOM_" + "A" * 250):
        assert client("PUT", f"/traits/{bad}").status == 400
    assert client("GET", "/traits/CUSTOM_GOLD").status == 204
    assert client("GET", "/traits/NO_SUCH").status == 404
    client.traits(uuid, "CUSTOM_GOLD", "HW_CPU_X86_AVX2")
    shown = client("GET", f"/resource_providers/{uuid}/traits").json
    assert shown == {"traits": ["HW_CPU_X86_AVX2", "CUSTOM_GOLD"], "resource_provider_generation": 1}
    assert client("DELETE", "/traits/CUSTOM_GOLD").status == 409
    assert client("DELETE", "/traits/HW_CPU_X86_AVX2").status == 400
    stale = client("PUT", f"/resource_providers/{uuid}/traits", {"traits": [], "resource_provider_generation": 0})
    assert (stale.status, stale.error["code"]) == (409, "placement.concurrent_update")
    unknown = {"traits": ["NO_SUCH"], "resource_provider_generation": 1}
    assert client("PUT", f"/resource_providers/{uuid}/traits", unknown).status == 400
    assert client("GET", "/traits?associated=true").json["traits"] == ["HW_CPU_X86_AVX2", "CUSTOM_GOLD"]
    assert client("GET", "/traits?name=startswith:CUSTOM").json["traits"] == ["CUSTOM_GOLD"]
    unused = client("GET", "/traits?name=in:CUSTOM_GOLD,HW_CPU_X86_SSE&associated=false").json["traits"]
    assert unused == ["HW_CPU_X86_SSE"]
    assert client("DELETE", f"/resource_providers/{uuid}/traits").status == 204
    assert client("DELETE", "/traits/CUSTOM_GOLD").status == 204
    assert client("DELETE", "/traits/CUSTOM_GOLD").status == 404


def test_standard_names_stand_in_a_new_service(client: Client) -> None:
    traits = client("GET", "/traits").json["traits"]
    classes = [one["name"] for one in client("GET", "/resource_classes").json["resource_classes"]]
    assert {"COMPUTE_NODE", "HW_CPU_X86_AVX2", "MISC_SHARES_VIA_AGGREGATE"} <= set(traits)
    assert {"VCPU", "MEMORY_MB", "DISK_GB", "PCPU", "VGPU"} <= set(classes)


def test_classes_are_made_renamed_and_deleted(client: Client) -> None:
    path = "/resource_classes"
    assert client.at("1.6")("POST", path, {"name": "CUSTOM_IRON"}).status == 201
    assert client.at("1.6")("POST", path, {"name": "CUSTOM_IRON"}).status == 409
    renamed = client.at("1.6")("PUT", f"{path}/CUSTOM_IRON", {"name": "CUSTOM_STEEL"})
    assert renamed.json["name"] == "CUSTOM_STEEL"
    assert client("GET", f"{path}/CUSTOM_IRON").status == 404
    assert client("PUT", f"{path}/CUSTOM_IRON").status == 201
    assert client("PUT", f"{path}/CUSTOM_IRON").status == 204
    assert client("PUT", f"{path}/IRON").status == 400
    assert client("DELETE", f"{path}/VCPU").status == 400
    uuid = client.provider("a", CUSTOM_IRON=1)
    assert client("DELETE", f"{path}/CUSTOM_IRON").status == 409
    assert client("DELETE", f"/resource_providers/{uuid}").status == 204
    assert client("DELETE", f"{path}/CUSTOM_IRON").status == 204
    assert client("DELETE", f"{path}/CUSTOM_IRON").status == 404


def test_a_renamed_class_shows_its_new_name_in_candidates(client: Client) -> None:
    client("PUT", "/resource_classes/CUSTOM_IRON")
    uuid = client.provider("a", CUSTOM_IRON=1)
    query = "/allocation_candidates?resources=CUSTOM_{}:1"
    assert uuid in client("GET", query.format("IRON")).json["provider_summaries"]
    client.at("1.6")("PUT", "/resource_classes/CUSTOM_IRON", {"name": "CUSTOM_STEEL"})
    found = client("GET", query.format("STEEL")).json["provider_summaries"][uuid]
    assert list(found["resources"]) == ["CUSTOM_STEEL"]
    assert client("GET", query.format("IRON")).status == 400


def test_aggregates_are_a_list_before_1_19_and_carry_the_generation_after(client: Client) -> None:
    uuid = client.provider("a")
    path = f"/resource_providers/{uuid}/aggregates"
    old = client.at("1.18")("PUT", path, [AGG_2, AGG_1])
    assert old.json == {"aggregates": [AGG_2, AGG_1]}
    assert client.generation(uuid) == 0
    body = {"aggregates": [AGG_1], "resource_provider_generation": 0}
    assert client("PUT", path, body).json == {"aggregates": [AGG_1], "resource_provider_generation": 1}
    stale = client("PUT", path, body)
    assert (stale.status, stale.error["code"]) == (409, "placement.concurrent_update")
    assert client("GET", path).json == {"aggregates": [AGG_1], "resource_provider_generation": 1}
    assert client.at("1.0")("GET", path).status == 404
    for bad in ([AGG_1], {"aggregates": ["cow"], "resource_provider_generation": 1}, {"aggregates": []}):
        assert client("PUT", path, bad).status == 400
