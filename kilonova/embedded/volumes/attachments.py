"""Attachments: reserved for a server, connected by a host, complete, gone; the volume's status follows them."""

from __future__ import annotations

from typing import Any

from sqlalchemy.engine import Connection

from kilonova.core import clock
from kilonova.embedded.store import Row
from kilonova.embedded.volumes import views
from kilonova.embedded.volumes.tables import attachments, volumes
from kilonova.embedded.volumes.world import (
    TEXT,
    AttachmentNotFound,
    Caller,
    InUseByCompute,
    InvalidInput,
    InvalidStatus,
    caller_of,
    fresh,
    listed,
    locked,
    paged,
    seen,
    writer_of,
)
from kilonova.http.fields import UUID, Enum, Field, Obj, Query, nullable, wrap
from kilonova.http.op import Op, Request

_PENDING = ("attaching", "reserved")


def settle(c: Connection, volume: Row) -> None:
    """Give the volume the status that its attachments imply; one that is in error stays so."""
    held = {row["status"] for row in attachments.find(c, {"volume_id": volume["id"]})}
    status = next((after for name, after in (("attaching", "attaching"), ("attached", "in-use"),
                                             ("reserved", "reserved")) if name in held), "available")  # fmt: skip
    if volume["status"] != "error":
        volumes.update(c, volume["id"], {"status": status, "updated_at": clock.utcnow()})


def _create(req: Request) -> Row:
    caller, given = writer_of(req, "volume:attachment_create"), req.body["attachment"]
    with req.world.database.write() as c:
        volume = locked(c, caller, given["volume_uuid"])
        server = given.get("instance_uuid")
        _check_free(volume, attachments.find(c, {"volume_id": volume["id"]}), server)
        row = fresh(volume_id=volume["id"], project_id=volume["project_id"], instance_uuid=server, status="reserved",
                    attach_mode=given.get("mode") or ("ro" if volume["readonly"] else "rw"), mountpoint=None,
                    attached_host=None, connector=None, attached_at=None)  # fmt: skip
        if volume["readonly"] and row["attach_mode"] == "rw":
            raise InvalidInput(f"Invalid volume: volume {volume['id']} is read-only and cannot be attached as 'rw'.")
        attachments.insert(c, row)
        if given.get("connector"):
            row |= _connect(c, row, given["connector"])
        settle(c, volume)
    return {"attachment": views.attachment(row)}


def _check_free(volume: Row, held: list[Row], server: str | None) -> None:
    """One server may hold several attachments, as it does while it moves; several servers need multiattach."""
    wanted = ("available", "downloading", "in-use") if volume["multiattach"] else ("available", "downloading")
    same = bool(held) and server is not None and all(row["instance_uuid"] == server for row in held)
    if volume["status"] not in wanted and not same:
        raise InvalidStatus(what="volume", id=volume["id"], wanted=f"{' or '.join(wanted)} to be reserved",
                            now=volume["status"])  # fmt: skip


def _connect(c: Connection, row: Row, connector: dict[str, Any]) -> Row:
    changes: Row = {
        "connector": connector, "attached_host": connector.get("host"), "mountpoint": connector.get("mountpoint"),
        "attach_mode": connector.get("mode") or row["attach_mode"], "updated_at": clock.utcnow(),
        "status": "attaching" if row["status"] == "reserved" else row["status"],
    }  # fmt: skip
    attachments.update(c, row["id"], changes)
    return changes


def _held(c: Connection, caller: Caller, key: str) -> tuple[Row, Row]:
    """(volume, attachment), both kept from change until the transaction ends."""
    row = seen(caller, attachments.get(c, key), AttachmentNotFound, key)
    volume = locked(c, caller, row["volume_id"])
    return volume, seen(caller, attachments.get(c, key), AttachmentNotFound, key)


def _update(req: Request) -> Row:
    caller = writer_of(req, "volume:attachment_update")
    with req.world.database.write() as c:
        volume, row = _held(c, caller, req.path["id"])
        row |= _connect(c, row, req.body["attachment"]["connector"])
        settle(c, volume)
    return {"attachment": views.attachment(row)}


def _complete(req: Request) -> None:
    caller = writer_of(req, "volume:attachment_complete")
    with req.world.database.write() as c:
        volume, row = _held(c, caller, req.path["id"])
        if row["status"] not in (*_PENDING, "attached"):
            raise InvalidStatus(what="attachment", id=row["id"], wanted=" or ".join(_PENDING), now=row["status"])
        now = clock.utcnow()
        attachments.update(c, row["id"], {"status": "attached", "attached_at": row["attached_at"] or now,
                                          "updated_at": now})  # fmt: skip
        settle(c, volume)


def _delete(req: Request) -> Row:
    caller = writer_of(req, "volume:attachment_delete")
    with req.world.database.write() as c:
        volume, row = _held(c, caller, req.path["id"])
        left = drop(c, caller, volume, row)
    return {"attachments": [views.attachment(one, detail=False) for one in left]}


def drop(c: Connection, caller: Caller, volume: Row, row: Row) -> list[Row]:
    """Remove an attachment; answers those that are left. Raises InUseByCompute unless a service asks."""
    if row["status"] == "attached" and row["instance_uuid"] is not None and not caller.service:
        raise InUseByCompute(id=row["id"])
    attachments.delete(c, row["id"])
    settle(c, volume)
    return attachments.find(c, {"volume_id": volume["id"]})


def _list(req: Request, *, detail: bool) -> Row:
    if "instance_id" in req.query:
        req.query["instance_uuid"] = req.query.pop("instance_id")
    return paged(req, listed(req, caller_of(req), attachments), "attachments",
                 lambda row: views.attachment(row, detail=detail))  # fmt: skip


def _show(req: Request) -> Row:
    caller, key = caller_of(req), req.path["id"]
    with req.world.database.read() as c:
        return {"attachment": views.attachment(seen(caller, attachments.get(c, key), AttachmentNotFound, key))}


_CONNECTOR = Obj(*(Field(name, TEXT) for name in ("host", "mountpoint", "mode")), open=True, null=True)
_NEW = Obj(Field("volume_uuid", UUID, required=True), Field("instance_uuid", nullable(UUID)),
           Field("connector", _CONNECTOR), Field("mode", Enum("rw", "ro"), since="3.54"))  # fmt: skip
_CHANGE = Obj(Field("connector", Obj(*_CONNECTOR.fields, open=True, min=1), required=True))
_QUERY, _SINCE, _ONE = Query(open=True), "3.27", "/attachments/{id}"
OPS: tuple[Op, ...] = (
    Op("POST", "/attachments", _create, body=wrap("attachment", _NEW), since=_SINCE),
    Op("GET", "/attachments", lambda req: _list(req, detail=False), query=_QUERY, since=_SINCE),
    Op("GET", "/attachments/detail", lambda req: _list(req, detail=True), query=_QUERY, since=_SINCE),
    Op("GET", _ONE, _show, since=_SINCE),
    Op("PUT", _ONE, _update, body=wrap("attachment", _CHANGE), since=_SINCE),
    Op("DELETE", _ONE, _delete, since=_SINCE, errors=(409,)),
    Op("POST", _ONE + "/action", _complete, action="os-complete", ok=204, since="3.44"),
)

