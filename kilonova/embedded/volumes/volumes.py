"""Volumes: made empty, from an image, a snapshot or another volume; changed; deleted.

A volume is ready when it is stored (the backend is simulated), so `creating` is seen in the create's answer only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sqlalchemy.engine import Connection

from kilonova.core import clock
from kilonova.core.errors import NotFound
from kilonova.embedded.store import Row, transact
from kilonova.embedded.volumes import quotas, types, views
from kilonova.embedded.volumes.tables import attachments, snapshots, volumes
from kilonova.embedded.volumes.tables import types as type_rows
from kilonova.embedded.volumes.world import (
    ENTRIES,
    TEXT,
    ZONE,
    Caller,
    InvalidInput,
    InvalidStatus,
    KeyNotFound,
    SnapshotNotFound,
    VolumeNotFound,
    caller_of,
    fresh,
    last,
    listed,
    locked,
    paged,
    seen,
    writer_of,
)
from kilonova.http.fields import Any_, Bool, Field, Int, Obj, Query, Str, wrap
from kilonova.http.op import Answer, Op, Request

DELETABLE = ("available", "error", "error_restoring", "error_extending", "error_managing")
_GIB = 1 << 30
_IMAGE_KEYS = ("container_format", "disk_format", "min_disk", "min_ram", "size", "checksum")
_IMAGE_OWN = frozenset((
    "id", "name", "status", "visibility", "owner", "tags", "created_at", "updated_at", "self", "file", "schema",
    "protected", "os_hidden", "virtual_size", "os_hash_algo", "os_hash_value", "locations", "direct_url", "stores",
    *_IMAGE_KEYS))  # fmt: skip


# -- create ------------------------------------------------------------------------------------------------------


def _create(req: Request) -> Row:
    caller, given = writer_of(req, "volume:create"), req.body["volume"]
    if not caller.project_id:
        raise InvalidInput("A volume belongs to a project: use a token that has one.")
    sources = [name for name in ("imageRef", "snapshot_id", "source_volid") if given.get(name)]
    if len(sources) > 1:
        raise InvalidInput(f"A volume has one source, not {' and '.join(sources)}.")
    if given.get("availability_zone") not in (None, ZONE):
        raise InvalidInput(f"Availability zone '{given['availability_zone']}' is invalid; there is '{ZONE}'.")
    image = _image_of(req, caller, given["imageRef"]) if given.get("imageRef") else None

    def work(c: Connection) -> tuple[Row, str]:
        row = _sized(c, caller, given, image)
        kind = _type_of(c, caller, given, row)
        row["type_id"] = kind["id"]
        row["multiattach"] = bool(given.get("multiattach")) or kind["extra_specs"].get("multiattach") == "<is> True"
        quotas.check(c, caller.project_id, row["size"], volumes=1, gigabytes=row["size"])
        volumes.insert(c, row)
        return row, kind["name"]

    row, kind = transact(req.world.database, work)
    return {"volume": views.volume(req, caller, row | {"status": "creating"}, kind, (), made=True)}


def _image_of(req: Request, caller: Caller, reference: str) -> Mapping[str, Any]:
    key = reference.rpartition("/")[2]
    try:
        image: Mapping[str, Any] = req.world.images(caller.ctx, key)
    except NotFound as error:
        raise InvalidInput(f"Invalid imageRef: image {key} could not be found.") from error
    if image["status"] != "active":
        raise InvalidInput(f"Image {key} is {image['status']}, not active.")
    return image


def _sized(c: Connection, caller: Caller, given: Row, image: Mapping[str, Any] | None) -> Row:
    """The row of a new volume, its size checked against its source."""
    row = fresh(
        project_id=caller.project_id, user_id=caller.user_id, status="available", size=given.get("size"),
        name=given.get("name", given.get("display_name")), metadata=given.get("metadata") or {}, bootable=False,
        description=given.get("description", given.get("display_description")), availability_zone=ZONE, readonly=None,
        snapshot_id=given.get("snapshot_id"), source_volid=given.get("source_volid"), image_metadata=None,
    )  # fmt: skip
    source = _source(c, caller, given)
    if source is not None:
        row |= {"bootable": source["bootable"], "image_metadata": source["image_metadata"]}
        row["size"] = row["size"] or source["size"]
        if row["size"] < source["size"]:
            raise InvalidInput(f"The size {row['size']} GB is less than the source's, {source['size']} GB.")
    if row["size"] is None:
        raise InvalidInput("A size is needed: it is given in GB, or that of a snapshot or volume.")
    if image is not None:
        needed = max(int(image.get("min_disk") or 0), -(-int(image.get("size") or 0) // _GIB))
        if row["size"] < needed:
            raise InvalidInput(f"The size {row['size']} GB is too small for the image, which needs {needed} GB.")
        row |= {"bootable": True, "image_metadata": _metadata_of(image)}
    return row


def _source(c: Connection, caller: Caller, given: Row) -> Row | None:
    if given.get("snapshot_id"):
        shot = seen(caller, snapshots.get(c, given["snapshot_id"]), SnapshotNotFound, given["snapshot_id"])
        if shot["status"] != "available":
            raise InvalidStatus(what="snapshot", id=shot["id"], wanted="available", now=shot["status"])
        origin = volumes.get(c, shot["volume_id"]) or {}
        return origin | {"size": shot["size"]}
    if given.get("source_volid"):
        origin = locked(c, caller, given["source_volid"])
        if origin["status"] not in ("available", "in-use"):
            raise InvalidStatus(what="volume", id=origin["id"], wanted="available or in-use", now=origin["status"])
        return origin
    return None


def _type_of(c: Connection, caller: Caller, given: Row, row: Row) -> Row:
    """The type asked for; else that of the source; else the default one."""
    origin = row["source_volid"]
    if given.get("volume_type") is None and row["snapshot_id"]:
        origin = (snapshots.get(c, row["snapshot_id"]) or {}).get("volume_id")
    if given.get("volume_type") is None and origin:
        found = type_rows.get(c, (volumes.get(c, origin) or {}).get("type_id", ""))
        if found is not None:
            return found
    return types.named(c, caller, given.get("volume_type"))


def _metadata_of(image: Mapping[str, Any]) -> dict[str, str]:
    """What a volume keeps of its image: everything that a server made from it must know."""
    kept = {"image_id": image["id"], "image_name": image.get("name") or ""}
    kept |= {name: str(image[name]) for name in _IMAGE_KEYS if image.get(name) is not None}
    return kept | {name: value for name, value in image.items() if name not in _IMAGE_OWN and isinstance(value, str)}


# -- list, show, update, delete ------------------------------------------------------------------------------------


def _list(req: Request, *, detail: bool) -> Row:
    caller = caller_of(req)
    found = listed(req, caller, volumes)
    if not detail:
        return paged(req, found, "volumes", lambda row: views.brief(req, row))
    with req.world.database.read() as c:
        names = {row["id"]: row["name"] for row in type_rows.find(c)}
        held: dict[str, list[Row]] = {}
        for one in attachments.find(c, {"status": "attached", "project_id": {row["project_id"] for row in found}}):
            held.setdefault(one["volume_id"], []).append(one)
    return paged(req, found, "volumes", lambda row: views.volume(
        req, caller, row, names[row["type_id"]], held.get(row["id"], ())))  # fmt: skip


def shown(req: Request, c: Connection, caller: Caller, row: Row) -> Row:
    """The document of one volume."""
    kind = type_rows.get(c, row["type_id"])
    held = attachments.find(c, {"volume_id": row["id"]})
    return {"volume": views.volume(req, caller, row, kind["name"] if kind else "", held)}


def _show(req: Request) -> Row:
    caller, key = caller_of(req), req.path["id"]
    with req.world.database.read() as c:
        return shown(req, c, caller, seen(caller, volumes.get(c, key), VolumeNotFound, key))


def _update(req: Request) -> Row:
    caller, given = writer_of(req, "volume:update"), dict(req.body["volume"])
    for old in ("display_name", "display_description"):
        if old in given:
            given[old.removeprefix("display_")] = given.pop(old)
    with req.world.database.write() as c:
        row = locked(c, caller, req.path["id"])
        given["updated_at"] = clock.utcnow()
        volumes.update(c, row["id"], given)
        return shown(req, c, caller, row | given)


def _delete(req: Request) -> Answer:
    caller = writer_of(req, "volume:delete")
    forced, cascade = (last(req, name).lower() in ("true", "1", "yes") for name in ("force", "cascade"))
    if forced:
        caller.must_rule("volume:force_delete")
    remove(req, caller, req.path["id"], forced=forced, cascade=cascade)
    return Answer()


def remove(req: Request, caller: Caller, key: str, *, forced: bool = False, cascade: bool = False) -> None:
    """Delete a volume. Raises VolumeNotFound, InvalidStatus, InvalidInput (attached, has snapshots)."""
    with req.world.database.write() as c:
        row = locked(c, caller, key)
        if row["status"] not in DELETABLE and not forced:
            raise InvalidStatus(what="volume", id=key, wanted=" or ".join(DELETABLE), now=row["status"])
        held = attachments.find(c, {"volume_id": key})
        if held and not forced:
            raise InvalidInput(f"Invalid volume: volume {key} is still attached, so it cannot be deleted.")
        if snapshots.find(c, {"volume_id": key}) and not (cascade or forced):
            raise InvalidInput(f"Invalid volume: volume {key} still has snapshots, so it cannot be deleted.")
        snapshots.delete(c, {"volume_id": key})
        attachments.delete(c, {"volume_id": key})
        volumes.delete(c, key)


# -- metadata, of volumes and snapshots ----------------------------------------------------------------------------


def metadata_ops(plural: str, rows: Any, missing: type[NotFound]) -> tuple[Op, ...]:
    """The five operations on the metadata of a resource."""
    path = f"/{plural}/{{id}}/metadata"

    def read(req: Request) -> dict[str, str]:
        caller = caller_of(req)
        with req.world.database.read() as c:
            found: dict[str, str] = seen(caller, rows.get(c, req.path["id"]), missing, req.path["id"])["metadata"]
        return found

    def change(req: Request, given: dict[str, str], *, whole: bool = False, drop: str | None = None) -> dict[str, str]:
        caller, key = writer_of(req, f"{plural}:update_metadata"), req.path["id"]
        with req.world.database.write() as c:
            old = seen(caller, rows.get(c, key), missing, key)["metadata"]
            if drop is not None and drop not in old:
                raise KeyNotFound(id=drop, what=key)
            new = {name: value for name, value in ({} if whole else old | given).items() if name != drop}
            new = given if whole else new
            rows.update(c, key, {"metadata": new})
        return new

    def one(req: Request) -> Row:
        found, key = read(req), req.path["key"]
        if key not in found:
            raise KeyNotFound(id=key, what=req.path["id"])
        return {"meta": {key: found[key]}}

    def set_one(req: Request) -> Row:
        if list(req.body["meta"]) != [req.path["key"]]:
            raise InvalidInput("The body must hold the key that the path names, and no other.")
        change(req, req.body["meta"])
        return {"meta": req.body["meta"]}

    def drop_one(req: Request) -> Answer:
        change(req, {}, drop=req.path["key"])
        return Answer()

    body = wrap("metadata", ENTRIES)
    return (
        Op("GET", path, lambda req: {"metadata": read(req)}),
        Op("POST", path, lambda req: {"metadata": change(req, req.body["metadata"])}, body=body),
        Op("PUT", path, lambda req: {"metadata": change(req, req.body["metadata"], whole=True)}, body=body),
        Op("GET", path + "/{key}", one),
        Op("PUT", path + "/{key}", set_one, body=wrap("meta", ENTRIES)),
        Op("DELETE", path + "/{key}", drop_one),
    )


_NEW = Obj(
    Field("size", Int(1, 2**31 - 1, null=True)), Field("multiattach", Bool(null=True)),
    Field("metadata", replace(ENTRIES, null=True)),
    *(Field(name, TEXT) for name in (
        "name", "display_name", "description", "display_description", "imageRef", "snapshot_id", "source_volid",
        "volume_type", "availability_zone", "user_id", "project_id", "status", "attach_status")),
    *(Field(name, Str(0, 0, null=True)) for name in ("consistencygroup_id", "group_id", "backup_id")),
)  # fmt: skip
CHANGE = Obj(*(Field(name, TEXT) for name in ("name", "display_name", "description", "display_description")),
             Field("metadata", ENTRIES))  # fmt: skip
_QUERY = Query(open=True)
OPS: tuple[Op, ...] = (
    Op("GET", "/volumes", lambda req: _list(req, detail=False), query=_QUERY),
    Op("GET", "/volumes/detail", lambda req: _list(req, detail=True), query=_QUERY),
    Op("POST", "/volumes", _create, body=Obj(Field("volume", _NEW, required=True),
       Field("OS-SCH-HNT:scheduler_hints", Any_)), ok=202),
    Op("GET", "/volumes/{id}", _show),
    Op("PUT", "/volumes/{id}", _update, body=wrap("volume", CHANGE)),
    Op("DELETE", "/volumes/{id}", _delete, query=_QUERY, ok=202),
    *metadata_ops("volumes", volumes, VolumeNotFound),
)  # fmt: skip

