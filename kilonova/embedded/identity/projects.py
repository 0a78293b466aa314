"""Projects: list, show, create, update, delete; and the projects that a user or a token may use."""

from __future__ import annotations

from typing import Any

from sqlalchemy.engine import Connection

from kilonova.core import ids
from kilonova.embedded.identity import grants
from kilonova.embedded.identity.access import caller, user_of_path
from kilonova.embedded.identity.nouns import (
    ANY_QUERY,
    Noun,
    NounNotFound,
    find,
    list_op,
    listed,
    merged,
    split,
    view,
)
from kilonova.embedded.identity.tables import CREDENTIALS, DOMAINS, GRANTS, LIMITS, PROJECTS, USERS
from kilonova.embedded.identity.tokens import revoke_all
from kilonova.embedded.identity.world import Revocation
from kilonova.embedded.store import Row
from kilonova.http.fields import Arr, Bool, Field, Obj, Str, wrap
from kilonova.http.op import Op, Request

_SHOWN = ("id", "name", "domain_id", "parent_id", "description", "enabled", "tags")
PROJECT = Noun("project", "projects", PROJECTS, _SHOWN, {"is_domain": False, "options": {}})
_FIELDS = (
    Field("description", Str(null=True)),
    Field("enabled", Bool(strict=True)),
    Field("parent_id", Str(max=64, null=True)),
    Field("tags", Arr(Str(1, 255, pattern="^[^,/]*$"), max=80, unique=True)),
)
_CREATE = wrap("project", Obj(Field("name", Str(1, 64), required=True), Field("domain_id", Str(max=64, null=True)),
                              *_FIELDS, open=True))  # fmt: skip
_UPDATE = wrap("project", Obj(Field("name", Str(1, 64)), *_FIELDS, open=True))


def own_domain(req: Request) -> str:
    """The domain of what the caller is working in; new things go there when the request does not say where."""
    token = caller(req)
    if token.domain is not None:
        return str(token.domain["id"])
    return str(token.project["domain_id"] if token.project else token.user["domain_id"])


def remove_project(connection: Connection, project_id: str) -> None:
    """Take a project away with everything that hangs on it here."""
    GRANTS.delete(connection, {"target_kind": "project", "target_id": project_id})
    CREDENTIALS.delete(connection, {"project_id": project_id})
    LIMITS.delete(connection, {"project_id": project_id})
    USERS.update(connection, {"default_project_id": project_id}, {"default_project_id": None})
    revoke_all(connection, project_id=project_id)
    PROJECTS.delete(connection, project_id)


def _show(req: Request) -> dict[str, Any]:
    if req.ctx.project_id != req.path["id"]:
        req.authorize("read")
    return {"project": view(req, PROJECT, find(req, PROJECT, req.path["id"]))}


def _create(req: Request) -> dict[str, Any]:
    body = req.body["project"]
    row = {"id": ids.new_hex(), "enabled": True, "description": "", "tags": [], **split(PROJECT, body)}
    row["domain_id"] = body.get("domain_id") or own_domain(req)
    row["parent_id"] = body.get("parent_id") or row["domain_id"]
    with req.world.database.write() as connection:
        if DOMAINS.get(connection, row["domain_id"]) is None:
            raise NounNotFound(noun="domain", id=row["domain_id"])
        if row["parent_id"] != row["domain_id"] and PROJECTS.get(connection, row["parent_id"]) is None:
            raise NounNotFound(noun="project", id=row["parent_id"])
        PROJECTS.insert(connection, row)
    return {"project": view(req, PROJECT, row)}


def _update(req: Request) -> dict[str, Any]:
    row = find(req, PROJECT, req.path["id"])
    changes = merged(PROJECT, row, req.body["project"])
    for fixed in ("domain_id", "parent_id"):
        changes.pop(fixed, None)
    with req.world.database.write() as connection:
        PROJECTS.update(connection, row["id"], changes)
        if not changes.get("enabled", True):
            revoke_all(connection, project_id=row["id"])
    req.world.revoked(Revocation(project_id=row["id"]))
    return {"project": view(req, PROJECT, {**row, **changes})}


def _delete(req: Request) -> None:
    row = find(req, PROJECT, req.path["id"])
    with req.world.database.write() as connection:
        remove_project(connection, row["id"])
    req.world.revoked(Revocation(project_id=row["id"]))


def _usable(connection: Connection, user_id: str, kind: str) -> list[Row]:
    rows = {"project": PROJECTS, "domain": DOMAINS}[kind]
    return rows.find(connection, {"id": grants.targets(connection, user_id, kind), "enabled": True})


def projects_of(req: Request, user_id: str) -> dict[str, Any]:
    """The list of the projects on which a user has a role."""
    with req.world.database.read() as connection:
        rows = _usable(connection, user_id, "project")
    asked = {name: values for name, values in req.query.items() if name in ("name", "domain_id")}
    rows = [row for row in rows if all(row[name] in values for name, values in asked.items())]
    return listed(req, "projects", [view(req, PROJECT, row) for row in rows])


def _of_user(req: Request) -> dict[str, Any]:
    return projects_of(req, req.path["user_id"])


def usable_domains(req: Request) -> list[Row]:
    """The domains on which the caller has a role."""
    with req.world.database.read() as connection:
        return _usable(connection, str(req.ctx.user_id), "domain")


OPS = (
    list_op(PROJECT, "read"),
    Op("GET", "/v3/projects/{id}", _show),
    Op("POST", "/v3/projects", _create, policy="admin_required", body=_CREATE, ok=201, errors=(409,)),
    Op("PATCH", "/v3/projects/{id}", _update, policy="admin_required", body=_UPDATE, errors=(409,)),
    Op("DELETE", "/v3/projects/{id}", _delete, policy="admin_required", ok=204),
    Op("GET", "/v3/users/{user_id}/projects", _of_user, policy="read_or_owner", target=user_of_path, query=ANY_QUERY),
)
