"""What a user does with a server that runs: volumes it boots from and has, power, lock, labels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.databases import Places
from tests.http.compute.cloud import Client, until
from tests.scenario.stage import (
    IMAGE,
    NOTHING,
    VOLUME,
    Stage,
    act,
    becomes,
    boot,
    delete,
    image,
    stage,
    volume,
    volume_becomes,
    volume_gone,
)


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory, places: Places) -> Iterator[Stage]:
    with stage(tmp_path_factory.mktemp("volumes") / "state", places) as made:
        yield made


@pytest.fixture
def demo(here: Stage) -> Iterator[Client]:
    """A member; afterwards nothing of the test is left."""
    client = here.demo.at("2.96")
    yield client
    delete(client, *(row["id"] for row in client.get("/servers")["servers"]))
    for row in client.get("/volumes", service=VOLUME)["volumes"]:
        volume_becomes(client, row["id"], "available")
        client.ok("DELETE", f"/volumes/{row['id']}", service=VOLUME, status=202)
        volume_gone(client, row["id"])
    assert here.left() == NOTHING


def bdm(source: str, uuid: str, **more: Any) -> list[dict[str, Any]]:
    """A root disk that is a volume, made from `source`."""
    row = {"boot_index": 0, "uuid": uuid, "source_type": source, "destination_type": "volume"}
    return [row | {"delete_on_termination": False} | more]


def root_volume(client: Client, server: dict[str, Any]) -> dict[str, Any]:
    """The one volume of a server, which is its root disk."""
    (row,) = server["os-extended-volumes:volumes_attached"]
    shown = volume_becomes(client, row["id"], "in-use")
    (attachment,) = shown["attachments"]
    assert (attachment["server_id"], attachment["device"]) == (server["id"], "/dev/vda")
    assert server["image"] == ""
    return shown


def test_a_server_boots_from_a_volume_that_is_there(demo: Client) -> None:
    disk = volume(demo, imageRef=image(demo))
    assert volume_becomes(demo, disk, "available")["bootable"] == "true"
    server = boot(demo, block_device_mapping_v2=bdm("volume", disk))
    assert root_volume(demo, server)["id"] == disk
    delete(demo, server["id"])
    volume_becomes(demo, disk, "available")


def test_a_server_boots_from_a_volume_made_of_an_image_which_goes_with_it(here: Stage, demo: Client) -> None:
    mapping = bdm("image", image(demo), volume_size=2, delete_on_termination=True)
    server = boot(demo, block_device_mapping_v2=mapping)
    disk = root_volume(demo, server)
    assert (disk["size"], disk["bootable"]) == (2, "true")
    assert disk["volume_image_metadata"]["image_id"] == image(demo)
    assert "DISK_GB" not in here.used()
    delete(demo, server["id"])
    volume_gone(demo, disk["id"])


def test_a_server_boots_from_a_volume_made_of_a_snapshot(demo: Client) -> None:
    disk = volume(demo, imageRef=image(demo))
    body = {"snapshot": {"volume_id": disk, "name": "snap"}}
    snapshot = demo.ok("POST", "/snapshots", body, service=VOLUME, status=202)["snapshot"]["id"]
    server = boot(demo, block_device_mapping_v2=bdm("snapshot", snapshot, delete_on_termination=True))
    assert root_volume(demo, server)["snapshot_id"] == snapshot
    delete(demo, server["id"])
    demo.ok("DELETE", f"/snapshots/{snapshot}", service=VOLUME, status=202)
    until(lambda: demo.status("GET", f"/snapshots/{snapshot}", service=VOLUME) == 404)


def test_a_volume_that_cannot_be_booted_from_is_refused_and_nothing_is_half_made(demo: Client) -> None:
    disk = volume(demo)
    body = {"server": {"name": "s", "flavorRef": "42", "networks": "none"}}
    body["server"]["block_device_mapping_v2"] = bdm("volume", disk)  # type: ignore[assignment]
    said = demo.refused(400, "POST", "/servers", body)
    assert disk in said
    assert demo.get("/servers")["servers"] == []
    volume_becomes(demo, disk, "available")


def test_a_volume_is_attached_and_detached(demo: Client) -> None:
    server, disk = boot(demo, networks="none")["id"], volume(demo)
    path = f"/servers/{server}/os-volume_attachments"
    made = demo.ok("POST", path, {"volumeAttachment": {"volumeId": disk, "tag": "data"}})["volumeAttachment"]
    assert made["volumeId"] == disk
    (attachment,) = volume_becomes(demo, disk, "in-use")["attachments"]
    assert (attachment["server_id"], attachment["device"]) == (server, made["device"])
    assert [row["volumeId"] for row in demo.get(path)["volumeAttachments"]] == [disk]
    assert demo.status("POST", path, {"volumeAttachment": {"volumeId": disk}}) in (400, 409)
    demo.ok("DELETE", f"{path}/{disk}", status=202)
    assert volume_becomes(demo, disk, "available")["attachments"] == []
    until(lambda: demo.get(path)["volumeAttachments"] == [])


def test_a_server_that_goes_gives_its_volume_back(demo: Client) -> None:
    server, disk = boot(demo, networks="none")["id"], volume(demo)
    body = {"volumeAttachment": {"volumeId": disk}}
    demo.ok("POST", f"/servers/{server}/os-volume_attachments", body)
    volume_becomes(demo, disk, "in-use")
    delete(demo, server)
    assert volume_becomes(demo, disk, "available")["attachments"] == []


@pytest.mark.parametrize(
    ("action", "value", "status", "back"),
    [
        ("os-stop", None, "SHUTOFF", "os-start"),
        ("pause", None, "PAUSED", "unpause"),
        ("suspend", None, "SUSPENDED", "resume"),
        ("reboot", {"type": "SOFT"}, "ACTIVE", None),
        ("reboot", {"type": "HARD"}, "ACTIVE", None),
    ],
)
def test_power_actions_lead_where_they_say_and_back(
    demo: Client, action: str, value: Any, status: str, back: str | None
) -> None:
    server = boot(demo, networks="none")["id"]
    act(demo, server, action, value)
    becomes(demo, server, status)
    if back is not None:
        assert demo.status("POST", f"/servers/{server}/action", {action: value}) == 409
        act(demo, server, back)
        becomes(demo, server, "ACTIVE")
    recorded = {row["action"] for row in demo.get(f"/servers/{server}/os-instance-actions")["instanceActions"]}
    assert recorded == {"create", action.removeprefix("os-")} | ({back.removeprefix("os-")} if back else set())


def test_a_locked_server_is_left_alone_until_it_is_unlocked(here: Stage, demo: Client) -> None:
    server = boot(demo, networks="none")["id"]
    act(demo, server, "lock", {"locked_reason": "mine"})
    shown = demo.get(f"/servers/{server}")["server"]
    assert (shown["locked"], shown["locked_reason"]) == (True, "mine")
    assert demo.status("POST", f"/servers/{server}/action", {"os-stop": None}) == 409
    assert demo.status("DELETE", f"/servers/{server}") == 409
    act(here.admin.at("2.96"), server, "os-stop")
    becomes(demo, server, "SHUTOFF")
    act(demo, server, "unlock")
    act(demo, server, "os-start")
    becomes(demo, server, "ACTIVE")


def test_labels_of_a_server(demo: Client) -> None:
    server = boot(demo, networks="none", metadata={"kept": "1"}, tags=["red"])["id"]
    demo.ok("POST", f"/servers/{server}/metadata", {"metadata": {"more": "2"}})
    demo.ok("PUT", f"/servers/{server}/metadata/kept", {"meta": {"kept": "3"}})
    demo.ok("PUT", f"/servers/{server}/tags/blue", status=201)
    demo.ok("DELETE", f"/servers/{server}/tags/red", status=204)
    demo.ok("PUT", f"/servers/{server}", {"server": {"name": "renamed", "description": "words"}})
    shown = demo.get(f"/servers/{server}")["server"]
    assert shown["metadata"] == {"kept": "3", "more": "2"}
    assert shown["tags"] == ["blue"]
    assert (shown["name"], shown["description"]) == ("renamed", "words")
    assert [row["id"] for row in demo.get("/servers?tags=blue")["servers"]] == [server]
    assert demo.get("/servers?tags=red")["servers"] == []
    assert demo.get(f"/images/{image(demo)}", service=IMAGE)["status"] == "active"
