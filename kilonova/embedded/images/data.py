"""Bytes in and out: queued → saving → active, or back to queued when the bytes do not arrive whole."""

from __future__ import annotations

from kilonova.core.errors import Conflict, Gone, Invalid, KilonovaError
from kilonova.embedded.images.files import Source
from kilonova.embedded.images.records import World, find, find_own, stamped
from kilonova.embedded.images.tables import IMAGES
from kilonova.embedded.store import Row
from kilonova.http.op import Answer, Op, Request

_BYTES = "application/octet-stream"


class NotBytes(KilonovaError):
    status, code, message = 415, "not_bytes", f"Image data must be sent as {_BYTES}."


class NotQueued(Conflict):
    code, message = "not_queued", "Image {id} is {status}; only a queued image can be filled."


class FormatsMissing(Invalid):
    code, message = "formats_missing", "disk_format and container_format must be set before the data."


class Truncated(Invalid):
    code, message = "truncated", "Of {expected} bytes only {size} arrived."


class DeletedMeanwhile(Gone):
    code, message = "deleted_meanwhile", "Image {id} was deleted while its data arrived."


class _Bounded:
    """At most so many bytes of a source: servers differ in whether their input ends with the body."""

    def __init__(self, source: Source, length: int) -> None:
        self._source = source
        self._left = length

    def read(self, size: int, /) -> bytes:
        piece = self._source.read(min(size, self._left)) if self._left else b""
        self._left -= len(piece)
        return piece


def _upload(req: Request) -> None:
    if (req.header("Content-Type") or "").partition(";")[0].strip().lower() != _BYTES:
        raise NotBytes
    with req.world.database.write() as connection:
        row = find_own(connection, req.ctx, req.path["id"])
        if row["disk_format"] is None or row["container_format"] is None:
            raise FormatsMissing
        if not IMAGES.update(connection, {"id": row["id"], "status": "queued"}, stamped({"status": "saving"})):
            raise NotQueued(**row)
    length = req.header("Content-Length")
    expected = int(length) if length else None
    fill(req.world, row, req.stream if expected is None else _Bounded(req.stream, expected), expected)


def fill(world: World, row: Row, source: Source, expected: int | None = None) -> None:
    """Take in the bytes of an image that is `saving`. Raises Truncated and DeletedMeanwhile; then nothing is kept."""
    image_id = row["id"]
    try:
        stored = world.files.receive(image_id, source)
        if expected is not None and stored.size != expected:
            world.files.discard(stored)
            raise Truncated(expected=expected, size=stored.size)
    except BaseException:
        with world.database.write() as connection:
            IMAGES.update(connection, {"id": image_id, "status": "saving"}, {"status": "queued"})
        raise
    world.files.keep(image_id, stored)
    values = stamped({
        "status": "active", "size": stored.size, "checksum": stored.md5, "os_hash_algo": "sha512",
        "os_hash_value": stored.sha512, "virtual_size": _virtual_size(row["disk_format"], stored.head, stored.size),
    })  # fmt: skip
    with world.database.write() as connection:
        done = IMAGES.update(connection, {"id": image_id, "status": "saving"}, values)
    if not done:
        world.files.remove(image_id)
        raise DeletedMeanwhile(id=image_id)


def _virtual_size(disk_format: str, head: bytes, size: int) -> int | None:
    """The size of the disk inside, where it can be told: a qcow2 header has it in bytes 24 to 31."""
    if disk_format == "qcow2" and head[:4] == b"QFI\xfb" and len(head) >= 32:
        return int.from_bytes(head[24:32]) & (2**63 - 1)
    return size if disk_format in ("raw", "iso") else None


def _download(req: Request) -> Answer:
    with req.world.database.read() as connection:
        row = find(connection, req.ctx, req.path["id"])
    if row["status"] != "active":
        return Answer(status=204)
    headers = (("Content-Length", str(row["size"])), ("Content-MD5", row["checksum"]))
    return Answer(req.world.files.pieces(row["id"]), headers=headers, content_type=_BYTES)


OPS = (
    Op("PUT", "/v2/images/{id}/file", _upload, ok=204, errors=(409, 410), stream=True),
    Op("GET", "/v2/images/{id}/file", _download, errors=(204,)),
)
