"""Bytes: up, down, broken off, deleted meanwhile, after a crash; and the images of a new deployment."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from kilonova.embedded.images import bootstrap
from kilonova.embedded.images.app import make_world
from kilonova.embedded.images.files import ImageFiles
from kilonova.embedded.images.records import World
from kilonova.embedded.images.tables import IMAGES
from kilonova.sql.engine import Database
from tests.http.images.picture import Client, Pieces


@pytest.mark.parametrize("chunked", [False, True])
def test_bytes_come_back_as_they_went(demo: Client, chunked: bool) -> None:
    data = bytes(range(256)) * 5000
    image = demo.create(disk_format="raw")["id"]
    pieces = (data[start : start + 70_000] for start in range(0, len(data), 70_000))
    assert demo.upload(image, Pieces(pieces) if chunked else data).status == 204
    shown = demo.get(f"/v2/images/{image}")
    md5, sha512 = hashlib.md5(data).hexdigest(), hashlib.sha512(data).hexdigest()
    assert {name: shown[name] for name in ("status", "size", "virtual_size", "checksum", "os_hash_algo",
                                           "os_hash_value")} == {
        "status": "active", "size": len(data), "virtual_size": len(data), "checksum": md5, "os_hash_algo": "sha512",
        "os_hash_value": sha512}
    answer = demo.ask("GET", f"/v2/images/{image}/file")
    assert answer.status == 200
    assert answer.data == data
    assert answer.headers == {"Content-Type": "application/octet-stream", "Content-MD5": md5,
                              "Content-Length": str(len(data))}


def test_an_image_is_never_whole_in_memory(demo: Client, world: World) -> None:
    image = demo.create()["id"]
    body = Pieces(b"\0" * 1_000_000 for _ in range(20))
    assert demo.upload(image, body).status == 204
    assert 0 < body.largest <= 2**20
    assert max(len(piece) for piece in world.files.pieces(image)) <= 2**20


def test_only_a_queued_image_is_filled(demo: Client, other: Client, admin: Client) -> None:
    image = demo.create(visibility="community")["id"]
    assert other.upload(image, b"x").status == 403
    assert demo.upload(image, b"x", kind="application/json").status == 415
    assert demo.upload(image, b"x").status == 204
    assert demo.upload(image, b"y").status == 409
    assert other.ask("GET", f"/v2/images/{image}/file").data == b"x"
    assert demo.upload("none", b"x").status == 404
    bare = demo.ask("POST", "/v2/images", {"name": "no formats"}).body["id"]
    assert demo.upload(bare, b"x").status == 400


def test_a_queued_image_has_no_content(demo: Client) -> None:
    image = demo.create()["id"]
    answer = demo.ask("GET", f"/v2/images/{image}/file")
    assert (answer.status, answer.data) == (204, b"")


def files(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def test_an_upload_that_breaks_off_leaves_a_queued_image_and_no_file(demo: Client, directory: Path) -> None:
    image = demo.create()["id"]
    assert demo.upload(image, Pieces([b"abc"], breaks=True)).status == 500
    assert demo.upload(image, b"abc", length=10).status == 400
    assert demo.get(f"/v2/images/{image}")["status"] == "queued"
    assert files(directory) == []
    assert demo.upload(image, b"abc").status == 204


def test_an_image_deleted_while_its_bytes_come_leaves_no_file(demo: Client, directory: Path) -> None:
    image = demo.create()["id"]

    def pieces() -> Any:
        yield b"abc"
        assert demo.get(f"/v2/images/{image}")["status"] == "saving"
        assert demo.upload(image, b"other").status == 409
        assert demo.ask("DELETE", f"/v2/images/{image}").status == 204
        yield b"def"

    assert demo.upload(image, Pieces(pieces())).status == 410
    assert files(directory) == []


def test_deleting_removes_the_bytes_even_while_they_are_read(demo: Client, world: World, directory: Path) -> None:
    image = demo.create()["id"]
    demo.upload(image, b"abc")
    reading = world.files.pieces(image)
    assert demo.ask("DELETE", f"/v2/images/{image}").status == 204
    assert files(directory) == []
    assert b"".join(reading) == b"abc"


def test_a_start_after_a_crash_takes_half_uploads_back(demo: Client, database: Database, directory: Path) -> None:
    image = demo.create()["id"]
    with database.write() as connection:
        IMAGES.update(connection, image, {"status": "saving"})
    (directory / f"{image}.x.part").write_bytes(b"half")
    make_world(database, directory)
    assert demo.get(f"/v2/images/{image}")["status"] == "queued"
    assert files(directory) == []


@pytest.mark.parametrize("name", ["../secret", "/etc/passwd", "", ".", "a" * 36, "0" * 32,
                                  "00000000-0000-0000-0000-000000000000\n", "00000000-0000-0000-0000-00000000000G"])
def test_no_name_but_an_id_reaches_the_disk(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError):
        ImageFiles(tmp_path).path(name)


@pytest.mark.parametrize("path", ["/v2/images/../../etc/passwd", "/v2/images/../file", "/v2/images/..%2F..%2Fx/file",
                                  "/v2/images/./file", "/v2/images//file"])
def test_a_path_that_climbs_is_404(demo: Client, path: str) -> None:
    assert demo.ask("GET", path).status == 404


def test_a_new_deployment_has_two_public_images_once(world: World, demo: Client) -> None:
    for _ in range(2):
        bootstrap.bootstrap(world, owner="padmin")
    images = demo.get("/v2/images?sort=name")["images"]
    assert [row["name"] for row in images] == ["cirros-0.6.3-x86_64-disk", "blank-x86_64-disk"]
    for row in images:
        assert (row["status"], row["visibility"], row["owner"], row["disk_format"]) == (
            "active", "public", "padmin", "qcow2")
        assert "without an operating system" in row["description"]
        data = demo.ask("GET", row["file"]).data
        assert hashlib.md5(data).hexdigest() == row["checksum"]
        assert len(data) == row["size"] > 0
        assert data[:4] == b"QFI\xfb"
    assert images[0]["virtual_size"] == 112 * 2**20


def test_a_start_that_stopped_half_way_is_finished_by_the_next(world: World, demo: Client) -> None:
    bootstrap.bootstrap(world, owner="padmin")
    with world.database.write() as connection:
        IMAGES.update(connection, {"name": "blank-x86_64-disk"}, {"status": "queued"})
    bootstrap.bootstrap(world, owner="padmin")
    assert {row["status"] for row in demo.get("/v2/images")["images"]} == {"active"}
    assert {demo.ask("GET", row["file"]).data[:3] for row in demo.get("/v2/images")["images"]} == {b"QFI"}
