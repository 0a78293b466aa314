"""Who may do what in identity: administrators manage, system readers look at everything, users see themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kilonova.core.context import Context
from kilonova.core.errors import Forbidden
from kilonova.embedded.identity.world import Token
from kilonova.http.op import Request

ENVIRON_TOKEN = "kilonova.identity.token"


class NotAuthorized(Forbidden):
    code, message = "not_authorized", "You are not authorized to perform the requested action: {rule}."


def _admin(ctx: Context, target: dict[str, Any]) -> bool:
    return "admin" in ctx.roles


def _read(ctx: Context, target: dict[str, Any]) -> bool:
    return _admin(ctx, target) or ("reader" in ctx.roles and ctx.system_scope == "all")


def _self(ctx: Context, target: dict[str, Any]) -> bool:
    return bool(ctx.user_id == target["user_id"])


def _service(ctx: Context, target: dict[str, Any]) -> bool:
    return _read(ctx, target) or "service" in ctx.roles


RULES: dict[str, Callable[[Context, dict[str, Any]], bool]] = {
    "admin_required": _admin,
    "read": _read,
    "service_or_read": _service,
    "owner": _self,
    "admin_or_owner": lambda ctx, target: _admin(ctx, target) or _self(ctx, target),
    "read_or_owner": lambda ctx, target: _read(ctx, target) or _self(ctx, target),
}


class Policy:
    """The rules above, as the HTTP kit asks for them."""

    def allowed(self, rule: str, ctx: Context, target: dict[str, Any]) -> bool:
        return RULES[rule](ctx, target)

    def authorize(self, rule: str, ctx: Context, target: dict[str, Any]) -> None:
        if not self.allowed(rule, ctx, target):
            raise NotAuthorized(rule=rule)


def caller(req: Request) -> Token:
    """The token that the request came with."""
    token: Token = req.environ[ENVIRON_TOKEN]
    return token


def user_of_path(req: Request) -> dict[str, Any]:
    """The target of rows under `/v3/users/{user_id}/…`, for the owner rules."""
    return {"user_id": req.path["user_id"]}
