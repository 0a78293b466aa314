"""/servers/{id}/tags: words to find servers by."""

from __future__ import annotations

from typing import Any

from kilonova.api.compute.server_metadata import server_of
from kilonova.api.compute.server_view import links_to
from kilonova.compute import labels
from kilonova.http.fields import TAGS, Field, Null, Obj
from kilonova.http.op import Answer, Op, Request

_RULE = "os_compute_api:os-server-tags:"


def index(req: Request) -> dict[str, Any]:
    """All tags."""
    return {"tags": labels.tags_of(req.world, req.target)}


def update_all(req: Request) -> dict[str, Any]:
    """Replace the tags."""
    return {"tags": labels.set_tags(req.world, req.ctx, req.target, req.body["tags"])}


def delete_all(req: Request) -> None:
    """Remove all tags."""
    labels.set_tags(req.world, req.ctx, req.target, [])


def show(req: Request) -> None:
    """Whether the server has a tag."""
    if req.path["id"] not in labels.tags_of(req.world, req.target):
        raise labels.TagNotFound(server=req.target.server.uuid, tag=req.path["id"])


def update(req: Request) -> Answer:
    """Add a tag: 201 with its address, or 204 when it is there."""
    if not labels.add_tag(req.world, req.ctx, req.target, req.path["id"]):
        return Answer(status=204)
    here = links_to(req, "servers", req.target.server.uuid)[0]["href"]
    return Answer(status=201, headers=(("Location", f"{here}/tags/{req.path['id']}"),))


def delete(req: Request) -> None:
    """Remove a tag."""
    labels.remove_tag(req.world, req.ctx, req.target, req.path["id"])


def _op(method: str, item: bool, handler: Any, rule: str, **more: Any) -> Op:
    path = "/servers/{server_id}/tags" + ("/{id}" if item else "")
    return Op(method, path, handler, policy=_RULE + rule, target=server_of, since="2.26", **more)


OPS: tuple[Op, ...] = (
    _op("GET", False, index, "index", errors=(404,)),
    _op("PUT", False, update_all, "update_all", body=Obj(Field("tags", TAGS, required=True)), errors=(404, 409)),
    _op("DELETE", False, delete_all, "delete_all", ok=204, errors=(404, 409)),
    _op("GET", True, show, "show", ok=204, errors=(404,)),
    _op("PUT", True, update, "update", body=Null, ok=201, errors=(400, 404, 409)),
    _op("DELETE", True, delete, "delete", ok=204, errors=(404, 409)),
)
