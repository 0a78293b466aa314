"""With which projects a shared image is shared, and whether they took it."""

from __future__ import annotations

from typing import Any

from kilonova.core import clock
from kilonova.core.errors import Forbidden, NotFound
from kilonova.embedded.images.records import ImageNotFound, NotYours, find, find_own, is_admin, owns, stamped
from kilonova.embedded.images.tables import MEMBERS
from kilonova.embedded.store import Row, page
from kilonova.http.fields import Enum, Field, Obj, Str
from kilonova.http.op import Op, Request


class NotShared(Forbidden):
    code, message = "not_shared", "Only images with visibility 'shared' have members."


class MemberNotFound(NotFound):
    code, message = "member_not_found", "{member} is not a member of image {image}."


def _view(row: Row) -> dict[str, Any]:
    return {
        "image_id": row["image_id"], "member_id": row["member_id"], "status": row["status"],
        "created_at": clock.iso_z(row["created_at"]), "updated_at": clock.iso_z(row["updated_at"]),
        "schema": "/v2/schemas/member",
    }  # fmt: skip


def _key(req: Request) -> Row:
    return {"image_id": req.path["id"], "member_id": req.path["member"]}


def _list(req: Request) -> dict[str, Any]:
    with req.world.database.read() as connection:
        image = find(connection, req.ctx, req.path["id"])
        rows = MEMBERS.find(connection, {"image_id": image["id"]})
    if image["visibility"] != "shared":
        raise NotShared
    if not owns(req.ctx, image):
        rows = [row for row in rows if row["member_id"] == req.ctx.project_id]
    rows = page(rows, sort=(("created_at", "asc"), ("member_id", "asc")), key="member_id")[0]
    return {"members": [_view(row) for row in rows], "schema": "/v2/schemas/members"}


def _show(req: Request) -> dict[str, Any]:
    found = [row for row in _list(req)["members"] if row["member_id"] == req.path["member"]]
    if not found:
        raise MemberNotFound(member=req.path["member"], image=req.path["id"])
    shown: dict[str, Any] = found[0]
    return shown


def _add(req: Request) -> dict[str, Any]:
    now = clock.utcnow()
    with req.world.database.write() as connection:
        image = find_own(connection, req.ctx, req.path["id"], "share")
        if image["visibility"] != "shared":
            raise NotShared
        row = {"image_id": image["id"], "member_id": req.body["member"], "status": "pending", "created_at": now,
               "updated_at": now}  # fmt: skip
        MEMBERS.insert(connection, row)
    return _view(row)


def _update(req: Request) -> dict[str, Any]:
    """The member itself answers whether it takes the image; the owner cannot for it."""
    with req.world.database.write() as connection:
        found = MEMBERS.find(connection, _key(req))
        if req.ctx.project_id != req.path["member"] and not is_admin(req.ctx):
            find(connection, req.ctx, req.path["id"])
            raise NotYours(what="accept or reject for another project")
        if not found:
            raise ImageNotFound(id=req.path["id"])
        changes = stamped({"status": req.body["status"]})
        MEMBERS.update(connection, _key(req), changes)
    return _view({**found[0], **changes})


def _remove(req: Request) -> None:
    with req.world.database.write() as connection:
        find_own(connection, req.ctx, req.path["id"], "unshare")
        if not MEMBERS.delete(connection, _key(req)):
            raise MemberNotFound(member=req.path["member"], image=req.path["id"])


_PATH = "/v2/images/{id}/members"
OPS = (
    Op("GET", _PATH, _list),
    Op("POST", _PATH, _add, body=Obj(Field("member", Str(1, 255), required=True)), errors=(409,)),
    Op("GET", f"{_PATH}/{{member}}", _show),
    Op("PUT", f"{_PATH}/{{member}}", _update, body=Obj(
        Field("status", Enum("pending", "accepted", "rejected"), required=True), open=True)),
    Op("DELETE", f"{_PATH}/{{member}}", _remove, ok=204),
)  # fmt: skip
