"""Server actions on power and state: start, stop, reboot, pause, suspend, lock, reset."""

from __future__ import annotations

from collections.abc import Callable

from kilonova.api.compute.servers import server_of
from kilonova.compute import power
from kilonova.http.fields import Any_, AnyOf, Enum, Field, Null, Obj, Str
from kilonova.http.op import Op, Request
from kilonova.http.versions import Since

_SERVERS = "os_compute_api:servers:"


def _start(name: str) -> Callable[[Request], None]:
    def handler(req: Request) -> None:
        power.start(req.world, req.ctx, req.target, name)

    return handler


def reboot(req: Request) -> None:
    """Reboot, softly or hard."""
    power.start(req.world, req.ctx, req.target, "reboot-" + req.body["type"].lower())


def lock(req: Request) -> None:
    """Lock, from 2.73 with a reason."""
    body = req.body if req.flag("reason") else None
    power.lock(req.world, req.ctx, req.target, (body or {}).get("locked_reason"))


def unlock(req: Request) -> None:
    """Unlock."""
    may = req.allowed("os_compute_api:os-lock-server:unlock:unlock_override", req.target)
    power.unlock(req.world, req.ctx, req.target, may_override=may)


def reset(req: Request) -> None:
    """Set the state by hand."""
    power.reset(req.world, req.ctx, req.target, req.body["state"])


def _power(action: str, policy: str, errors: tuple[int, ...] = (404, 409)) -> Op:
    return Op(
        "POST", "/servers/{id}/action", _start(action), action=action, policy=policy, target=server_of, body=Any_,
        ok=202, errors=errors,
    )  # fmt: skip


_REBOOT = Obj(Field("type", Enum("HARD", "Hard", "hard", "SOFT", "Soft", "soft"), required=True))
_REASON = AnyOf(Null, Obj(Field("locked_reason", Str(1, 255))))

OPS: tuple[Op, ...] = (
    _power("os-start", _SERVERS + "start"),
    _power("os-stop", _SERVERS + "stop"),
    Op(
        "POST", "/servers/{id}/action", reboot, action="reboot", policy=_SERVERS + "reboot", target=server_of,
        body=_REBOOT, ok=202, errors=(404, 409),
    ),
    _power("pause", "os_compute_api:os-pause-server:pause", (404, 409, 501)),
    _power("unpause", "os_compute_api:os-pause-server:unpause", (404, 409, 501)),
    _power("suspend", "os_compute_api:os-suspend-server:suspend", (400, 403, 404, 409)),
    _power("resume", "os_compute_api:os-suspend-server:resume", (404, 409)),
    Op(
        "POST", "/servers/{id}/action", lock, action="lock", policy="os_compute_api:os-lock-server:lock",
        target=server_of, body=Since(Any_, ("2.73", _REASON)), ok=202, errors=(404,), flags={"reason": "2.73"},
    ),
    Op(
        "POST", "/servers/{id}/action", unlock, action="unlock", policy="os_compute_api:os-lock-server:unlock",
        also=("os_compute_api:os-lock-server:unlock:unlock_override",), target=server_of, body=Any_, ok=202,
        errors=(404,),
    ),
    Op(
        "POST", "/servers/{id}/action", reset, action="os-resetState",
        policy="os_compute_api:os-admin-actions:reset_state", target=server_of, ok=202, errors=(404,),
        body=Obj(Field("state", Enum("active", "error"), required=True)),
    ),
)  # fmt: skip
