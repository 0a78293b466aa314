"""Volumes: their life, sources, quotas and who sees them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any
from unittest.mock import Mock

import pytest

from tests.http.volumes.conftest import IMAGE


def test_a_create_answers_creating_and_the_volume_is_available_at_once(demo: Any) -> None:
    made = demo.make(name="v", metadata={"a": "b"})
    assert made["status"] == "creating"
    assert not [key for key in made if key.startswith("os-vol")]
    shown = demo.show(made["id"])
    assert (shown["status"], shown["name"], shown["metadata"]) == ("available", "v", {"a": "b"})
    assert shown["bootable"] == "false"
    assert shown["os-vol-tenant-attr:tenant_id"] == demo.project
    assert demo.ask("DELETE", f"/volumes/{made['id']}")[0] == 202
    assert demo.ask("GET", f"/volumes/{made['id']}")[0] == 404


def test_the_keys_of_a_volume_are_cinders_own_at_each_version(demo: Any, admin: Any) -> None:
    base = {"attachments", "links", "encrypted", "updated_at", "replication_status", "id", "size", "user_id",
            "availability_zone", "metadata", "status", "description", "multiattach", "consistencygroup_id", "name",
            "bootable", "created_at", "volume_type", "snapshot_id", "source_volid"}  # fmt: skip
    made = replace(demo, version="3.0").make()
    assert set(made) == base
    key = made["id"]
    tenant = {"os-vol-tenant-attr:tenant_id"}
    ruler = {"os-vol-host-attr:host", "os-vol-mig-status-attr:migstat", "os-vol-mig-status-attr:name_id"}
    assert set(replace(demo, version="3.0").show(key)) == base | tenant
    assert set(replace(demo, version="3.13").show(key)) == base | tenant | {"group_id"}
    new = {"group_id", "shared_targets", "service_uuid"}
    assert set(demo.show(key)) == base | tenant | new
    assert set(admin.show(key)) == base | tenant | new | ruler | {"provider_id"}


def test_the_version_header_is_echoed_and_an_unknown_one_refused(demo: Any) -> None:
    assert replace(demo, version="3.27").ask("GET", "/volumes")[2]["OpenStack-API-Version"] == "volume 3.27"
    assert replace(demo, version="3.99").ask("GET", "/volumes")[0] == 406


def test_both_forms_of_path_serve_and_another_projects_is_refused(demo: Any) -> None:
    key = demo.make()["id"]
    assert replace(demo, prefix=f"/v3/{demo.project}").show(key)["id"] == key
    status, document, _ = replace(demo, prefix="/v3/" + "9" * 32).ask("GET", f"/volumes/{key}")
    assert (status, list(document)) == (400, ["badRequest"])


def test_a_service_acts_in_the_project_of_the_address_and_nobody_else_does(
    service: Any, admin: Any, demo: Any
) -> None:
    there = f"/v3/{demo.project}"
    made = replace(service, prefix=there).make(name="for demo")
    assert demo.show(made["id"])["name"] == "for demo"
    assert replace(admin, prefix=there).ask("POST", "/volumes", {"volume": {"size": 1}})[0] == 400



def test_version_documents_need_no_token(app: Any) -> None:
    for path, expected in (("", 300), ("/", 300), ("/v3", 200), ("/v3/", 200)):
        start = Mock()
        body = app({"REQUEST_METHOD": "GET", "PATH_INFO": path, "SCRIPT_NAME": "/volume", "wsgi.url_scheme": "http",
                    "HTTP_HOST": "cloud", "wsgi.input": None}, start)  # fmt: skip
        assert start.call_args[0][0].startswith(str(expected))
        assert b'"id":"v3.0"' in b"".join(body)


def test_a_volume_from_an_image_is_bootable_and_knows_its_image(demo: Any) -> None:
    key = demo.make(size=3, imageRef=IMAGE["id"])["id"]
    shown = demo.show(key)
    assert shown["bootable"] == "true"
    assert shown["volume_image_metadata"] == {
        "image_id": IMAGE["id"], "image_name": "cirros", "min_disk": "2", "min_ram": "64", "size": str(3 << 30),
        "disk_format": "qcow2", "container_format": "bare", "checksum": "c", "hw_disk_bus": "virtio"}  # fmt: skip
    assert demo.show(demo.make(size=None, source_volid=key)["id"])["volume_image_metadata"]["image_name"] == "cirros"


@pytest.mark.parametrize("body", [
    {"size": 2, "imageRef": IMAGE["id"]}, {"imageRef": "9" * 8}, {"size": 0}, {"size": "x"}, {"size": -1},
    {"size": None}, {"bogus": 1}, {"availability_zone": "mars"}, {"name": "x" * 256}, {"metadata": {"k": 1}},
    {"imageRef": IMAGE["id"], "source_volid": "x"},
])  # fmt: skip
def test_a_create_that_cannot_be_is_a_400(demo: Any, body: dict[str, Any]) -> None:
    status, document, _ = demo.ask("POST", "/volumes", {"volume": {"size": 1} | body})
    assert (status, document["badRequest"]["code"]) == (400, 400)
    assert demo.ok("GET", "/volumes")["volumes"] == []


def test_unknown_sources_and_types_are_a_404(demo: Any) -> None:
    for body in ({"snapshot_id": "nope"}, {"source_volid": "nope"}, {"volume_type": "nope"}):
        assert demo.ask("POST", "/volumes", {"volume": {"size": 1} | body})[0] == 404


def test_another_projects_volumes_do_not_exist(demo: Any, other: Any, admin: Any) -> None:
    key = demo.make()["id"]
    assert other.ask("GET", f"/volumes/{key}")[0] == 404
    assert other.ask("DELETE", f"/volumes/{key}")[0] == 404
    assert other.ok("GET", "/volumes?all_tenants=1")["volumes"] == []
    assert [row["id"] for row in admin.ok("GET", "/volumes?all_tenants=1")["volumes"]] == [key]
    assert admin.ok("GET", "/volumes/detail")["volumes"] == []


def test_readers_only_read(demo: Any) -> None:
    key = demo.make()["id"]
    reader = replace(demo, roles=("reader",))
    assert reader.show(key)["id"] == key
    status, document, _ = reader.ask("DELETE", f"/volumes/{key}")
    assert (status, list(document)) == (403, ["forbidden"])


def test_quotas_stop_a_project_with_413_and_can_be_raised(demo: Any, admin: Any) -> None:
    admin.ok("PUT", f"/os-quota-sets/{demo.project}", {"quota_set": {"volumes": 1, "gigabytes": 5}})
    demo.make(size=2)
    status, document, _ = demo.ask("POST", "/volumes", {"volume": {"size": 1}})
    assert (status, document["overLimit"]["message"].split(":")[0]) == (413, "VolumeLimitExceeded")
    assert demo.ok("GET", f"/os-quota-sets/{demo.project}?usage=True")["quota_set"]["gigabytes"] == {
        "limit": 5, "in_use": 2, "reserved": 0}  # fmt: skip
    assert demo.ok("GET", "/limits")["limits"]["absolute"]["totalVolumesUsed"] == 1
    assert demo.ask("PUT", f"/os-quota-sets/{demo.project}", {"quota_set": {"volumes": 9}})[0] == 403
    admin.ok("DELETE", f"/os-quota-sets/{demo.project}")
    demo.make()


def test_creates_at_once_never_pass_a_quota(demo: Any) -> None:
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: demo.ask("POST", "/volumes", {"volume": {"size": 1}})[0], range(20)))
    assert sorted(answers) == [202] * 10 + [413] * 10


def test_lists_filter_sort_and_page(demo: Any) -> None:
    ids = {name: demo.make(name=name)["id"] for name in ("a", "b", "c")}
    assert [v["id"] for v in demo.ok("GET", "/volumes?name=b")["volumes"]] == [ids["b"]]
    first = demo.ok("GET", "/volumes/detail?limit=2&sort=name:asc&with_count=true")
    assert [v["name"] for v in first["volumes"]] == ["a", "b"]
    assert first["count"] == 3
    rest = first["volumes_links"][0]["href"].split("/volume/v3")[1]
    assert [v["name"] for v in demo.ok("GET", rest)["volumes"]] == ["c"]
    for wrong in ("limit=x", "marker=nope", "sort=bogus", "metadata=x"):
        assert demo.ask("GET", f"/volumes?{wrong}")[0] == 400


def test_metadata_is_read_merged_replaced_and_dropped(demo: Any) -> None:
    path = f"/volumes/{demo.make(metadata={'a': '1'})['id']}/metadata"
    assert demo.ok("POST", path, {"metadata": {"b": "2"}})["metadata"] == {"a": "1", "b": "2"}
    assert demo.ok("PUT", path + "/b", {"meta": {"b": "3"}})["meta"] == {"b": "3"}
    assert demo.ask("DELETE", path + "/a")[0] == 200
    assert demo.ask("GET", path + "/a")[0] == 404
    assert demo.ok("PUT", path, {"metadata": {"z": "9"}})["metadata"] == {"z": "9"}
    assert demo.ok("GET", path)["metadata"] == {"z": "9"}


def test_names_change_and_duplicates_are_fine(demo: Any) -> None:
    first, second = demo.make(name="same")["id"], demo.make(name="same")["id"]
    body = {"volume": {"name": "new", "description": "d"}}
    assert demo.ok("PUT", f"/volumes/{first}", body)["volume"]["name"] == "new"
    assert demo.show(second)["name"] == "same"


def test_snapshots_keep_their_volume_from_deletion_unless_cascaded(demo: Any) -> None:
    key = demo.make(size=2)["id"]
    shot = demo.ok("POST", "/snapshots", {"snapshot": {"volume_id": key, "name": "s"}})["snapshot"]
    assert shot["status"] == "creating"
    shown = demo.ok("GET", f"/snapshots/{shot['id']}")["snapshot"]
    assert (shown["status"], shown["size"]) == ("available", 2)
    assert shown["os-extended-snapshot-attributes:progress"] == "100%"
    copy = demo.make(size=None, snapshot_id=shot["id"])["id"]
    assert demo.show(copy)["size"] == 2
    assert demo.ask("POST", "/volumes", {"volume": {"size": 1, "snapshot_id": shot["id"]}})[0] == 400
    assert demo.ask("DELETE", f"/volumes/{key}")[0] == 400
    assert demo.ask("DELETE", f"/volumes/{key}?cascade=true")[0] == 202
    assert demo.ok("GET", "/snapshots/detail")["snapshots"] == []


def test_types_are_found_by_name_and_made_by_administrators_only(demo: Any, admin: Any) -> None:
    assert demo.ok("GET", "/types/default")["volume_type"]["name"] == "__DEFAULT__"
    shared = demo.ok("GET", "/types/multiattach")["volume_type"]
    assert shared["extra_specs"] == {"multiattach": "<is> True"}
    assert demo.make(volume_type="multiattach")["multiattach"] is True
    assert demo.ask("POST", "/types", {"volume_type": {"name": "fast"}})[0] == 403
    fast = admin.ok("POST", "/types", {"volume_type": {"name": "fast", "extra_specs": {"a": "b"}}})["volume_type"]
    assert admin.ask("POST", "/types", {"volume_type": {"name": "fast"}})[0] == 409
    admin.ok("POST", f"/types/{fast['id']}/extra_specs", {"extra_specs": {"c": "d"}})
    assert demo.ok("GET", f"/types/{fast['id']}/extra_specs/c") == {"c": "d"}
    demo.make(volume_type=fast["id"])
    assert admin.ask("DELETE", f"/types/{fast['id']}")[0] == 400
    assert admin.ask("DELETE", f"/types/{shared['id']}")[0] == 400


def test_what_is_not_served_says_so(demo: Any) -> None:
    key = demo.make()["id"]
    for method, path, body in (("GET", "/backups/detail", None), ("POST", f"/volumes/{key}/action", {"os-retype": {}})):
        status, document, _ = demo.ask(method, path, body)
        assert (status, list(document)) == (501, ["notImplemented"])
    assert demo.ask("GET", "/nowhere")[0] == 404
    assert demo.ask("POST", f"/volumes/{key}/action", {"bogus": {}})[0] == 400


def test_small_documents(demo: Any, admin: Any) -> None:
    assert demo.ok("GET", "/os-availability-zone")["availabilityZoneInfo"][0]["zoneName"] == "nova"
    assert {row["alias"] for row in demo.ok("GET", "/extensions")["extensions"]} >= {"os-volume-actions"}
    assert demo.ask("GET", "/os-services")[0] == 403
    found = admin.ok("GET", "/os-services?binary=cinder-volume")["services"]
    assert [row["binary"] for row in found] == ["cinder-volume"]
