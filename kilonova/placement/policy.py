"""Who may do what: nearly everything is for the roles admin and service, of project scope (placement-facts §11)."""

from __future__ import annotations

from typing import Any

from kilonova.core.context import Context
from kilonova.core.errors import Forbidden

PREFIX = "placement:"
USAGES = "placement:usages"
RESHAPE = "placement:reshaper:reshape"


class NotAllowed(Forbidden):
    code, message = "placement.undefined_code", "{rule} does not allow this."


class Rules:
    """The default rules, as the HTTP kit asks for them."""

    def allowed(self, rule: str, ctx: Context, target: dict[str, Any]) -> bool:
        """Whether the rule lets the caller act on the target."""
        if ctx.system_scope:
            return False
        roles = {role.lower() for role in ctx.roles or ()}
        if "service" in roles:
            return True
        if rule == RESHAPE:
            return False
        if "admin" in roles:
            return True
        return rule == USAGES and "reader" in roles and ctx.project_id == target.get("project_id")

    def authorize(self, rule: str, ctx: Context, target: dict[str, Any]) -> None:
        """Forbidden unless `allowed`."""
        if not self.allowed(rule, ctx, target):
            raise NotAllowed(rule=rule)
