"""Server actions on the console."""

from __future__ import annotations

from typing import Any

from kilonova.api.compute.servers import server_of
from kilonova.compute import console
from kilonova.http.fields import Field, Obj, Raw
from kilonova.http.op import Op, Request

_BODY = Obj(Field("length", Raw({"type": ["integer", "string", "null"], "pattern": "^-?[0-9]+$", "minimum": -1})))


def get_output(req: Request) -> dict[str, Any]:
    """The console's last lines."""
    length = req.body.get("length")
    return {"output": console.output(req.world, req.ctx, req.target, None if length is None else int(length))}


OPS: tuple[Op, ...] = (
    Op(
        "POST", "/servers/{id}/action", get_output, action="os-getConsoleOutput",
        policy="os_compute_api:os-console-output", target=server_of, body=_BODY, errors=(404, 409, 501),
    ),
)  # fmt: skip
