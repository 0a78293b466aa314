"""Records: creating, showing, listing, changing, deleting, and who may."""

from __future__ import annotations

from typing import Any

import pytest

from kilonova.core import ids
from kilonova.embedded.images.app import NOT_SERVED
from tests.http.images.picture import V20, V21, Client


@pytest.mark.parametrize(("path", "status"), [("", 300), ("/", 300), ("/versions", 200)])
def test_versions_are_told_to_everybody(app: Any, path: str, status: int) -> None:
    answer = Client(app, None).ask("GET", path)
    assert answer.status == status
    first = answer.body["versions"][0]
    assert first["status"] == "CURRENT"
    assert first["links"] == [{"rel": "self", "href": "http://cloud:8774/image/v2/"}]


def test_without_a_token_there_is_nothing(app: Any) -> None:
    for method, path in (("GET", "/v2/images"), ("POST", "/v2/images"), ("GET", "/v2/schemas/image")):
        assert Client(app, None).ask(method, path).status == 401


def test_a_new_image_is_queued_and_flat(demo: Client) -> None:
    answer = demo.ask("POST", "/v2/images", {
        "name": "ü ✓", "disk_format": "qcow2", "container_format": "bare", "min_disk": 2, "min_ram": 64,
        "tags": ["a", "b", "a"], "hw_rescue_bus": "usb"})
    image = answer.body
    path = f"/v2/images/{image['id']}"
    assert answer.status == 201
    assert answer.headers["Location"] == f"http://cloud:8774/image{path}"
    assert {name: image[name] for name in ("name", "status", "visibility", "owner", "size", "min_disk", "min_ram",
                                           "protected", "os_hidden", "checksum", "hw_rescue_bus", "tags")} == {
        "name": "ü ✓", "status": "queued", "visibility": "shared", "owner": "pdemo", "size": None, "min_disk": 2,
        "min_ram": 64, "protected": False, "os_hidden": False, "checksum": None, "hw_rescue_bus": "usb",
        "tags": ["a", "b"]}
    assert (image["self"], image["file"], image["schema"]) == (path, f"{path}/file", "/v2/schemas/image")
    assert image["created_at"].endswith("Z")
    assert demo.get(path) == image


def test_an_id_may_be_chosen_once(demo: Client) -> None:
    key = ids.new_uuid()
    assert demo.create(id=key)["id"] == key
    assert demo.ask("POST", "/v2/images", {"id": key}).status == 409
    assert demo.ask("POST", "/v2/images", {"id": "../../etc/passwd"}).status == 400


@pytest.mark.parametrize(("body", "status"), [
    ({"name": "x" * 256}, 400), ({"name": 5}, 400), ({"min_disk": -1}, 400), ({"min_ram": "1"}, 400),
    ({"min_ram": 2**31}, 400), ({"disk_format": "zip"}, 400), ({"container_format": "box"}, 400),
    ({"visibility": "secret"}, 400), ({"protected": "yes"}, 400), ({"tags": "a"}, 400), ({"free": 5}, 400),
    ({"free": None}, 400), ({"": "x"}, 400), ({"status": "active"}, 403), ({"size": 5}, 403),
    ({"visibility": "public"}, 403), ({"owner": "pother"}, 403), ([], 400), (None, 400),
])  # fmt: skip
def test_a_bad_create_is_refused_and_makes_nothing(demo: Client, body: Any, status: int) -> None:
    answer = demo.ask("POST", "/v2/images", body)
    assert answer.status == status
    assert answer.body["message"]
    assert demo.names() == []


def test_administrators_publicize_and_give_away(admin: Client, other: Client) -> None:
    image = admin.create(visibility="public", owner="pother")
    assert image["owner"] == "pother"
    assert other.patch(image["id"], {"op": "replace", "path": "/name", "value": "mine"}).status == 200


@pytest.mark.parametrize(("visibility", "shown", "listed"), [
    ("private", 404, False), ("shared", 404, False), ("community", 200, False), ("public", 200, True),
])  # fmt: skip
def test_visibility_says_who_sees(
    admin: Client, demo: Client, other: Client, visibility: str, shown: int, listed: bool
) -> None:
    image = admin.create(name="i", visibility=visibility, owner="pdemo")["id"]
    assert demo.names() == ["i"]
    assert other.ask("GET", f"/v2/images/{image}").status == shown
    assert (other.names() == ["i"]) is listed
    assert admin.names() == ["i"]
    assert other.ask("DELETE", f"/v2/images/{image}").status == (403 if shown == 200 else 404)
    assert other.patch(image).status == (403 if shown == 200 else 404)


def test_community_images_are_listed_when_asked_for(demo: Client, other: Client) -> None:
    demo.create(name="c", visibility="community")
    assert other.names("?visibility=community") == ["c"]


def test_a_name_in_place_of_an_id_is_404(demo: Client) -> None:
    demo.create(name="named")
    answer = demo.ask("GET", "/v2/images/named")
    assert answer.status == 404
    assert answer.body["code"] == "404 Not Found"


def test_lists_are_filtered(demo: Client) -> None:
    demo.create(name="a", tags=["t", "u"], disk_format="iso", min_ram=5, hw_x="1")
    filled = demo.create(name="b", protected=True)["id"]
    demo.upload(filled, b"12345")
    demo.create(name="h", os_hidden=True)
    for query, names in (
        ("name=a", ["a"]), ("name=in:a,h", ["a"]), ("status=active", ["b"]), ("status=in:active,queued", ["a", "b"]),
        ("tag=t&tag=u", ["a"]), ("tag=t&tag=v", []), ("disk_format=iso", ["a"]), ("hw_x=1", ["a"]), ("hw_x=2", []),
        ("protected=true", ["b"]), ("protected=False", ["a"]), ("size_min=5", ["b"]), ("size_max=4", ["a"]),
        ("min_ram=5", ["a"]), ("owner=pdemo", ["a", "b"]), ("owner=x", []), ("os_hidden=true", ["h"]),
        ("visibility=shared", ["a", "b"]), ("visibility=public", []), (f"id={filled}", ["b"]),
        ("created_at=gt:2001-01-01T00:00:00Z", ["a", "b"]), ("updated_at=lt:2001-01-01T00:00:00Z", []),
    ):
        assert demo.names(f"?{query}&sort=name:asc") == names, query


@pytest.mark.parametrize("query", ["limit=x", "limit=-1", "marker=none", "sort=colour", "sort_key=name&sort_dir=up",
                                   "visibility=secret", "os_hidden=perhaps", "size_min=big", "created_at=gt:once",
                                   "member_status=x"])
def test_a_bad_query_is_400(demo: Client, query: str) -> None:
    demo.create(name="a")
    assert demo.ask("GET", f"/v2/images?{query}").status == 400


def test_pages_are_linked_and_complete(demo: Client) -> None:
    for number in range(5):
        demo.create(name=f"i{number}")
    path, seen = "/v2/images?limit=2&sort_key=name&sort_dir=asc", []
    while path:
        page = demo.get(path)
        assert page["first"] == "/v2/images?limit=2&sort_key=name&sort_dir=asc"
        seen += [row["name"] for row in page["images"]]
        path = page.get("next")
    assert seen == ["i0", "i1", "i2", "i3", "i4"]
    assert demo.names("?sort=name:desc")[0] == "i4"
    assert demo.names("?limit=0") == []


def test_both_kinds_of_patch_do_the_same(demo: Client) -> None:
    for kind, operations in (
        (V21, ({"op": "replace", "path": "/name", "value": "n"}, {"op": "add", "path": "/a~1b", "value": "c"},
               {"op": "remove", "path": "/old"}, {"op": "replace", "path": "/tags", "value": ["x"]})),
        (V20, ({"replace": "/name", "value": "n"}, {"add": "/a~1b", "value": "c"}, {"remove": "/old"},
               {"replace": "/tags", "value": ["x"]})),
    ):
        image = demo.create(name="o", old="1")["id"]
        answer = demo.patch(image, *operations, kind=kind)
        assert answer.status == 200, answer.body
        assert (answer.body["name"], answer.body["a/b"], answer.body["tags"]) == ("n", "c", ["x"])
        assert "old" not in answer.body
        assert demo.get(f"/v2/images/{image}") == answer.body


@pytest.mark.parametrize(("operation", "status"), [
    ({"op": "replace", "path": "/id", "value": "x"}, 403), ({"op": "add", "path": "/status", "value": "active"}, 403),
    ({"op": "remove", "path": "/name"}, 403), ({"op": "replace", "path": "/visibility", "value": "public"}, 403),
    ({"op": "replace", "path": "/owner", "value": "pother"}, 403),
    ({"op": "replace", "path": "/none", "value": "x"}, 409), ({"op": "remove", "path": "/none"}, 409),
    ({"op": "add", "path": "/free", "value": 5}, 400), ({"op": "replace", "path": "/min_disk", "value": -1}, 400),
    ({"op": "add", "path": "/a/b", "value": "x"}, 400),
    ({"op": "add", "path": "free", "value": "x"}, 400), ({"op": "add", "path": "/free"}, 400),
    ({"op": "move", "path": "/free", "value": "x"}, 400), ({"add": "/free", "value": "x"}, 400), (["add"], 400),
    ({"op": "add", "path": 5, "value": "x"}, 400),
])  # fmt: skip
def test_a_bad_patch_changes_nothing(demo: Client, operation: Any, status: int) -> None:
    image = demo.create(name="a")
    assert demo.patch(image["id"], {"op": "replace", "path": "/name", "value": "b"}, operation).status == status
    assert demo.get(f"/v2/images/{image['id']}") == image


def test_a_patch_must_say_which_kind_it_is(demo: Client) -> None:
    image = demo.create()["id"]
    assert demo.patch(image, kind="application/json").status == 415
    assert demo.patch(image, kind="text/plain").status == 415
    assert demo.ask("PATCH", f"/v2/images/{image}", {"name": "x"}, kind=V21).status == 400


def test_formats_are_fixed_once_there_is_data(demo: Client) -> None:
    change = {"op": "replace", "path": "/disk_format", "value": "iso"}
    image = demo.create()["id"]
    assert demo.patch(image, change).body["disk_format"] == "iso"
    demo.upload(image, b"x")
    assert demo.patch(image, {**change, "value": "raw"}).status == 403


def test_a_protected_image_is_not_deleted(demo: Client) -> None:
    image = demo.create(protected=True)["id"]
    assert demo.ask("DELETE", f"/v2/images/{image}").status == 403
    demo.patch(image, {"op": "replace", "path": "/protected", "value": False})
    assert demo.ask("DELETE", f"/v2/images/{image}").status == 204
    assert demo.ask("GET", f"/v2/images/{image}").status == 404
    assert demo.ask("DELETE", f"/v2/images/{image}").status == 404


def test_tags_come_and_go_one_by_one(demo: Client) -> None:
    image = demo.create(tags=["a"])["id"]
    assert [demo.ask("PUT", f"/v2/images/{image}/tags/b").status for _ in range(2)] == [204, 204]
    assert demo.get(f"/v2/images/{image}")["tags"] == ["a", "b"]
    assert [demo.ask("DELETE", f"/v2/images/{image}/tags/a").status for _ in range(2)] == [204, 404]
    assert demo.get(f"/v2/images/{image}")["tags"] == ["b"]


def test_a_shared_image_is_listed_where_it_was_accepted(demo: Client, other: Client) -> None:
    image = demo.create(name="s")["id"]
    members = f"/v2/images/{image}/members"
    assert demo.ask("POST", members, {"member": "pother"}).body["status"] == "pending"
    assert demo.ask("POST", members, {"member": "pother"}).status == 409
    assert other.get(f"/v2/images/{image}")["name"] == "s"
    assert other.names() == []
    assert other.names("?member_status=pending") == ["s"]
    assert demo.ask("PUT", f"{members}/pother", {"status": "accepted"}).status == 403
    assert other.ask("PUT", f"{members}/pother", {"status": "accepted", "member": "pother"}).status == 200
    assert other.ask("PUT", f"{members}/pother", {"status": "taken"}).status == 400
    assert other.names() == ["s"]
    assert [row["member_id"] for row in other.get(members)["members"]] == ["pother"]
    assert other.ask("DELETE", f"{members}/pother").status == 403
    assert demo.ask("DELETE", f"{members}/pother").status == 204
    assert other.ask("GET", f"/v2/images/{image}").status == 404


def test_only_shared_images_have_members(demo: Client) -> None:
    image = demo.create(visibility="private")["id"]
    assert demo.ask("POST", f"/v2/images/{image}/members", {"member": "pother"}).status == 403


def test_the_task_list_is_there_and_empty(demo: Client, other: Client) -> None:
    image = demo.create()["id"]
    assert demo.get(f"/v2/images/{image}/tasks") == {"tasks": []}
    assert other.ask("GET", f"/v2/images/{image}/tasks").status == 404


def test_the_schema_names_every_attribute_that_an_image_has(demo: Client) -> None:
    schema = demo.get("/v2/schemas/image")
    assert demo.create().keys() == schema["properties"].keys()
    assert schema["properties"]["status"]["readOnly"]
    assert demo.get("/v2/schemas/images")["properties"]["images"]["items"] == schema
    assert demo.get("/v2/schemas/members")["name"] == "members"


@pytest.mark.parametrize("path", [path for row, _ in NOT_SERVED for path in row.split(", ") if path.startswith("/v2")])
def test_what_is_not_served_is_a_clear_404(demo: Client, path: str) -> None:
    answer = demo.ask("GET", path.replace("{id}", demo.create()["id"]))
    assert answer.status == 404
    assert "not a path that this embedded service serves" in answer.body["message"]


def test_a_tag_in_the_path_may_be_any_text(demo: Client) -> None:
    image = demo.create()["id"]
    path = f"/v2/images/{image}/tags/" + "schön ✓".encode().decode("latin-1")  # as WSGI hands paths over
    assert demo.ask("PUT", path).status == 204
    assert demo.get(f"/v2/images/{image}")["tags"] == ["schön ✓"]
    assert demo.names("?tag=sch%C3%B6n%20%E2%9C%93") == [None]
