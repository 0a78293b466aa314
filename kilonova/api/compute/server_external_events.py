"""/os-server-external-events: what the network, volume and other services tell of servers."""

from __future__ import annotations

from typing import Any

from kilonova.compute import external_events
from kilonova.http.fields import UUID, Arr, Enum, Field, Obj, Str
from kilonova.http.op import Answer, Op, Request

_NAME = Enum(
    "network-changed", "network-vif-plugged", "network-vif-unplugged", "network-vif-deleted",
    ("volume-extended", "2.51"), ("power-update", "2.76"), ("accelerator-request-bound", "2.82"),
    ("volume-reimaged", "2.93"),
)  # fmt: skip

_BODY = Obj(
    Field(
        "events",
        Arr(
            Obj(
                Field("name", _NAME, required=True),
                Field("server_uuid", UUID, required=True),
                Field("status", Enum("failed", "completed", "in-progress")),
                Field("tag", Str(max=255)),
            ),
            min=1,
        ),
        required=True,
    )
)


def post(req: Request) -> Answer:
    """Take events: 200 when all were accepted, else 207; each carries its own code."""
    told = [
        (event["name"], event["server_uuid"], event.get("status", "completed"), event.get("tag"))
        for event in req.body["events"]
    ]
    answers = external_events.tell(req.world, req.ctx, told)
    return Answer(
        {"events": [_shown(one) for one in answers]}, status=200 if all(one.accepted for one in answers) else 207
    )


def _shown(one: external_events.Told) -> dict[str, Any]:
    document: dict[str, Any] = {
        "name": one.name, "server_uuid": one.server, "status": one.status, "code": one.code
    }  # fmt: skip
    if one.tag is not None:
        document["tag"] = one.tag
    return document


OPS: tuple[Op, ...] = (
    Op(
        "POST", "/os-server-external-events", post, policy="os_compute_api:os-server-external-events:create",
        body=_BODY, errors=(403,),
    ),
)  # fmt: skip
