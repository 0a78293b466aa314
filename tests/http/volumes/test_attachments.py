"""Attachments and the actions that move a volume between statuses."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from tests.http.volumes.conftest import SECOND, SERVER


def _reserve(client: Any, volume: str, server: str = SERVER, **more: Any) -> dict[str, Any]:
    body = {"attachment": {"volume_uuid": volume, "instance_uuid": server} | more}
    made: dict[str, Any] = client.ok("POST", "/attachments", body)["attachment"]
    return made


def _complete(client: Any, attachment: str) -> None:
    body = {"attachment": {"connector": {"host": "h", "mountpoint": "/dev/vdb"}}}
    client.ok("PUT", f"/attachments/{attachment}", body)
    assert client.ask("POST", f"/attachments/{attachment}/action", {"os-complete": None})[0] == 204


def test_a_volume_is_reserved_attaching_in_use_and_available_again(service: Any, demo: Any) -> None:
    key = demo.make()["id"]
    made = _reserve(service, key)
    assert (made["status"], made["instance"], made["connection_info"]) == ("reserved", SERVER, {})
    assert demo.show(key)["status"] == "reserved"
    body = {"attachment": {"connector": {"host": "h", "mountpoint": "/dev/vdb"}}}
    told = service.ok("PUT", f"/attachments/{made['id']}", body)["attachment"]
    assert told["connection_info"]["attachment_id"] == made["id"]
    assert demo.show(key)["status"] == "attaching"
    assert service.ask("POST", f"/attachments/{made['id']}/action", {"os-complete": {}})[0] == 204
    shown = demo.show(key)
    assert shown["status"] == "in-use"
    assert [(one["server_id"], one["device"], one["host_name"]) for one in shown["attachments"]] == [
        (SERVER, "/dev/vdb", "h")]  # fmt: skip
    assert [row["id"] for row in demo.ok("GET", f"/attachments?instance_id={SERVER}")["attachments"]] == [made["id"]]
    assert service.ok("DELETE", f"/attachments/{made['id']}") == {"attachments": []}
    assert demo.show(key)["status"] == "available"


def test_a_connector_at_once_makes_the_attachment_attaching(service: Any, demo: Any) -> None:
    key = demo.make()["id"]
    assert _reserve(service, key, connector={"host": "h"})["status"] == "attaching"
    assert demo.show(key)["status"] == "attaching"


def test_a_second_server_needs_multiattach_and_the_same_server_does_not(service: Any, demo: Any) -> None:
    key = demo.make()["id"]
    _complete(service, _reserve(service, key)["id"])
    body = {"attachment": {"volume_uuid": key, "instance_uuid": SECOND}}
    status, document, _ = service.ask("POST", "/attachments", body)
    assert (status, list(document)) == (400, ["badRequest"])
    moving = _reserve(service, key)
    assert demo.show(key)["status"] == "in-use"
    assert service.ok("DELETE", f"/attachments/{moving['id']}")["attachments"][0]["instance"] == SERVER
    shared = demo.make(volume_type="multiattach")["id"]
    for server in (SERVER, SECOND):
        _complete(service, _reserve(service, shared, server)["id"])
    assert {one["server_id"] for one in demo.show(shared)["attachments"]} == {SERVER, SECOND}


def test_a_users_own_delete_of_a_servers_attachment_is_a_conflict(service: Any, demo: Any, admin: Any) -> None:
    key = demo.make()["id"]
    made = _reserve(service, key)
    _complete(service, made["id"])
    for client in (demo, admin):
        assert client.ask("DELETE", f"/attachments/{made['id']}")[0] == 409
        assert client.act(key, "os-detach") == 409
    assert demo.show(key)["status"] == "in-use"
    assert demo.ask("DELETE", f"/volumes/{key}")[0] == 400


def test_attachments_are_unknown_before_their_version_and_elsewhere(service: Any, demo: Any, other: Any) -> None:
    made = _reserve(service, demo.make()["id"])
    assert replace(demo, version="3.26").ask("GET", f"/attachments/{made['id']}")[0] == 404
    assert other.ask("GET", f"/attachments/{made['id']}")[0] == 404
    assert other.ask("POST", "/attachments", {"attachment": {"volume_uuid": made["volume_id"]}})[0] == 404


def test_detaching_begins_and_rolls_back(service: Any, demo: Any) -> None:
    key = demo.make()["id"]
    assert demo.act(key, "os-begin_detaching") == 400
    _complete(service, _reserve(service, key)["id"])
    assert demo.act(key, "os-begin_detaching") == 202
    assert demo.show(key)["status"] == "detaching"
    assert demo.act(key, "os-begin_detaching") == 400
    assert demo.act(key, "os-roll_detaching") == 202
    assert demo.show(key)["status"] == "in-use"


def test_reserve_unreserve_and_the_old_attach(demo: Any, service: Any) -> None:
    key = demo.make()["id"]
    assert demo.act(key, "os-reserve") == 202
    assert demo.act(key, "os-reserve") == 400
    assert demo.act(key, "os-unreserve") == 202
    assert demo.show(key)["status"] == "available"
    assert demo.act(key, "os-attach", instance_uuid=SERVER, mountpoint="/dev/vdc", mode="rw") == 202
    assert demo.show(key)["attachments"][0]["device"] == "/dev/vdc"
    assert service.act(key, "os-detach") == 202
    assert demo.show(key)["status"] == "available"


def test_extend_only_grows_what_no_server_has(demo: Any, service: Any) -> None:
    key = demo.make(size=2)["id"]
    assert demo.act(key, "os-extend", new_size=2) == 400
    assert demo.act(key, "os-extend", new_size=4) == 202
    assert demo.show(key)["size"] == 4
    assert demo.act(key, "os-extend", new_size=100_000) == 413
    _reserve(service, key)
    assert demo.act(key, "os-extend", new_size=5) == 400


def test_bootable_and_readonly_and_image_metadata(demo: Any, service: Any) -> None:
    key = demo.make()["id"]
    assert demo.act(key, "os-set_bootable", bootable=True) == 200
    assert demo.act(key, "os-update_readonly_flag", readonly=True) == 202
    assert (demo.show(key)["bootable"], demo.show(key)["metadata"]) == ("true", {"readonly": "True"})
    assert _reserve(service, key)["attach_mode"] == "ro"
    body = {"os-set_image_metadata": {"metadata": {"hw_machine_type": "q35"}}}
    assert demo.ok("POST", f"/volumes/{key}/action", body) == {"metadata": {"hw_machine_type": "q35"}}
    assert demo.show(key)["volume_image_metadata"] == {"hw_machine_type": "q35"}
    assert demo.act(key, "os-unset_image_metadata", key="hw_machine_type") == 200
    assert "volume_image_metadata" not in demo.show(key)


def test_only_administrators_reset_a_status(demo: Any, admin: Any) -> None:
    key = demo.make()["id"]
    assert demo.act(key, "os-reset_status", status="error") == 403
    assert admin.act(key, "os-reset_status", status="error") == 202
    assert demo.show(key)["status"] == "error"
    assert demo.ask("DELETE", f"/volumes/{key}")[0] == 202


def test_of_many_servers_at_once_one_reserves_the_volume(service: Any, demo: Any) -> None:
    key = demo.make()["id"]
    servers = [f"{SERVER[:-2]}{number:02x}" for number in range(8)]
    bodies = [{"attachment": {"volume_uuid": key, "instance_uuid": server}} for server in servers]
    with ThreadPoolExecutor(8) as pool:
        statuses = [answer[0] for answer in pool.map(lambda body: service.ask("POST", "/attachments", body), bodies)]
    assert sorted(statuses) == [200] + [400] * 7
