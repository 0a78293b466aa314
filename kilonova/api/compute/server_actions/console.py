"""Server actions on the console."""

from __future__ import annotations

from typing import Any

from kilonova.api.compute.servers import server_of
from kilonova.compute import console
from kilonova.http.fields import Field, Int, Obj
from kilonova.http.op import Op, Request

_BODY = Obj(Field("length", Int(-1, null=True)))


def get_output(req: Request) -> dict[str, Any]:
    """The console's last lines."""
    return {"output": console.output(req.world, req.ctx, req.target, req.body.get("length"))}


OPS: tuple[Op, ...] = (
    Op(
        "POST", "/servers/{id}/action", get_output, action="os-getConsoleOutput",
        policy="os_compute_api:os-console-output", target=server_of, body=_BODY, errors=(404, 409, 501),
    ),
)  # fmt: skip
