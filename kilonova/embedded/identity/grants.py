"""Who has which role where, and which roles come with a role. Knows nothing of tokens or requests."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlalchemy.engine import Connection

from kilonova.embedded.identity.tables import GRANTS, ROLES
from kilonova.embedded.store import Row

KINDS = ("project", "domain", "system")
SYSTEM = "all"
IMPLIED = {"admin": "manager", "manager": "member", "member": "reader"}
"""Each role's next smaller one, by name; whoever has the first has the second."""


def with_implied(role_ids: Iterable[str], roles: Iterable[Row]) -> list[Row]:
    """The roles of these ids and all that they imply, each once, ordered by name."""
    by_id = {role["id"]: role for role in roles}
    by_name = {role["name"]: role for role in by_id.values()}
    found: dict[str, Row] = {}
    for role_id in role_ids:
        role = by_id.get(role_id)
        while role is not None and role["id"] not in found:
            found[role["id"]] = role
            role = by_name.get(IMPLIED.get(role["name"], ""))
    return sorted(found.values(), key=lambda role: str(role["name"]))


def effective(connection: Connection, user_id: str, kind: str, target_id: str) -> list[Row]:
    """The roles that a user has on a target, implied ones included."""
    granted = GRANTS.find(connection, {"user_id": user_id, "target_kind": kind, "target_id": target_id})
    if not granted:
        return []
    return with_implied((grant["role_id"] for grant in granted), ROLES.find(connection))


def targets(connection: Connection, user_id: str, kind: str) -> list[str]:
    """The ids of the projects (or domains …) on which a user has any role."""
    granted = GRANTS.find(connection, {"user_id": user_id, "target_kind": kind})
    return sorted({str(grant["target_id"]) for grant in granted})


def key(user_id: str, kind: str, target_id: str, role_id: str) -> dict[str, Any]:
    """The row (and the condition) of one grant."""
    return {"user_id": user_id, "target_kind": kind, "target_id": target_id, "role_id": role_id}
