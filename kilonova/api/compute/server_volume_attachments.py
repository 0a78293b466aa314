"""/servers/{id}/os-volume_attachments: the volumes of a server."""

from __future__ import annotations

from typing import Any

from kilonova.api.compute.server_metadata import server_of
from kilonova.compute import attachments
from kilonova.compute.attachments import NotAttached
from kilonova.core.errors import Unsupported
from kilonova.core.server import BlockDevice
from kilonova.http.fields import BOOL, DEVICE, NONNEG, TAG, UUID, Field, Obj, Param, Query, wrap
from kilonova.http.op import Answer, Op, Request
from kilonova.http.versions import Since
from kilonova.http.views import ABSENT, Out, View

_RULE = "os_compute_api:os-volumes-attachments:"
_PATH = "/servers/{server_id}/os-volume_attachments"

CREATE = wrap(
    "volumeAttachment",
    Obj(
        Field("volumeId", UUID, required=True),
        Field("device", DEVICE),
        Field("tag", TAG, since="2.49"),
        Field("delete_on_termination", BOOL, since="2.79"),
    ),
)
UPDATE = wrap(
    "volumeAttachment",
    Obj(
        Field("volumeId", UUID, required=True),
        Field("device", DEVICE, since="2.85"),
        Field("tag", TAG, since="2.85"),
        Field("delete_on_termination", BOOL, since="2.85"),
        Field("serverId", UUID, since="2.85"),
        Field("id", UUID, since="2.85"),
    ),
)
LIST = Query((Param("limit", NONNEG), Param("offset", NONNEG)), strict="2.75")


class SwapNotSupported(Unsupported):
    """Swapping a volume for another is the volume service's to ask for."""

    code, message = "swap_not_supported", "Swapping volumes is not supported by this deployment."


def _device_name(device: BlockDevice, req: Request) -> Any:
    if req.op.method == "POST":
        return device.device_name
    return device.device_name or ABSENT


ATTACHMENT = View(
    "volume_attachment",
    Out("id", lambda device, req: device.volume_id, at={"show": "-2.88", "create": "-2.100"}),
    Out("volumeId", lambda device, req: device.volume_id),
    Out("serverId", lambda device, req: req.target.server.uuid),
    Out("device", _device_name),
    Out("tag", lambda device, req: device.tag, since="2.70"),
    Out("delete_on_termination", lambda device, req: device.delete_on_termination, since="2.79"),
    Out("attachment_id", lambda device, req: device.attachment_id, at={"show": "2.89"}),
    Out("bdm_uuid", lambda device, req: device.uuid, at={"show": "2.89"}),
)


def index(req: Request) -> dict[str, Any]:
    """The volumes, within offset and limit."""
    found = attachments.of(req.world, req.target)
    offset = req.query.get("offset", 0)
    limit = req.query.get("limit") or req.world.settings.max_limit
    page = found[offset : offset + limit]
    if req.flag("own_ids"):
        page = [device for device in page if device.attachment_id]
    return {"volumeAttachments": ATTACHMENT.many(page, req, "show")}


def create(req: Request) -> Answer:
    """Attach a volume; from 2.101 on without waiting for anything."""
    body = req.body["volumeAttachment"]
    device = attachments.attach(
        req.world, req.ctx, req.target, body["volumeId"], device=body.get("device"), tag=body.get("tag"),
        delete_on_termination=body.get("delete_on_termination", False), multiattach=req.flag("multiattach"),
        shelved_allowed=req.flag("shelved"),
    )  # fmt: skip
    if req.flag("async_attach"):
        return Answer()
    return Answer({"volumeAttachment": ATTACHMENT.one(device, req, "create")})


def show(req: Request) -> dict[str, Any]:
    """One."""
    device = attachments.one(req.world, req.target, req.path["id"])
    if req.flag("own_ids") and not device.attachment_id:
        raise NotAttached(volume=req.path["id"])
    return {"volumeAttachment": ATTACHMENT.one(device, req, "show")}


def update(req: Request) -> None:
    """Change delete_on_termination."""
    body = req.body["volumeAttachment"]
    if body["volumeId"] != req.path["id"]:
        req.authorize(_RULE + "swap", req.target)
        raise SwapNotSupported
    req.authorize(_RULE + "update", req.target)
    attachments.change(req.world, req.target, req.path["id"], body)


def delete(req: Request) -> None:
    """Detach a volume."""
    attachments.detach(req.world, req.ctx, req.target, req.path["id"], shelved_allowed=req.flag("shelved"))


_FLAGS = {"async_attach": "2.101", "multiattach": "2.60", "shelved": "2.20", "own_ids": "2.89"}

OPS: tuple[Op, ...] = (
    Op("GET", _PATH, index, policy=_RULE + "index", target=server_of, query=LIST, errors=(404,), flags=_FLAGS),
    Op(
        "POST", _PATH, create, policy=_RULE + "create", target=server_of, body=CREATE,
        ok=Since(200, ("2.101", 202)), errors=(400, 403, 404, 409), flags=_FLAGS,
    ),
    Op("GET", _PATH + "/{id}", show, policy=_RULE + "show", target=server_of, errors=(404,), flags=_FLAGS),
    Op(
        "PUT", _PATH + "/{id}", update, also=(_RULE + "update", _RULE + "swap"), target=server_of, body=UPDATE,
        ok=202, errors=(400, 404, 409),
    ),
    Op(
        "DELETE", _PATH + "/{id}", delete, policy=_RULE + "delete", target=server_of, ok=202,
        errors=(400, 403, 404, 409), flags=_FLAGS,
    ),
)  # fmt: skip

