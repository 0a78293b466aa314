"""Domains: list, show, create, update, delete. A domain must be switched off before it can go."""

from __future__ import annotations

from typing import Any

from kilonova.core import ids
from kilonova.core.errors import Forbidden
from kilonova.embedded.identity.nouns import Noun, find, list_op, merged, split, view
from kilonova.embedded.identity.projects import remove_project
from kilonova.embedded.identity.tables import DOMAINS, GRANTS, PROJECTS, USERS
from kilonova.embedded.identity.tokens import revoke_all
from kilonova.embedded.identity.users import remove_user
from kilonova.embedded.identity.world import Revocation
from kilonova.http.fields import Bool, Field, Obj, Str, wrap
from kilonova.http.op import Op, Request

DOMAIN = Noun("domain", "domains", DOMAINS, ("id", "name", "description", "enabled"), {"options": {}, "tags": []})
_FIELDS = (Field("description", Str(null=True)), Field("enabled", Bool(strict=True)))
_CREATE = wrap("domain", Obj(Field("name", Str(1, 64), required=True), *_FIELDS, open=True))
_UPDATE = wrap("domain", Obj(Field("name", Str(1, 64)), *_FIELDS, open=True))


class DomainEnabled(Forbidden):
    code, message = "domain_enabled", "Cannot delete a domain that is enabled, please disable it first."


def _show(req: Request) -> dict[str, Any]:
    # Everybody may see the domain of their own account or project: clients look it up at login.
    if req.path["id"] not in (req.ctx.user_domain_id, req.ctx.project_domain_id):
        req.authorize("read")
    return {"domain": view(req, DOMAIN, find(req, DOMAIN, req.path["id"]))}


def _create(req: Request) -> dict[str, Any]:
    row = {"id": ids.new_hex(), "enabled": True, "description": "", **split(DOMAIN, req.body["domain"])}
    with req.world.database.write() as connection:
        DOMAINS.insert(connection, row)
    return {"domain": view(req, DOMAIN, row)}


def _update(req: Request) -> dict[str, Any]:
    row = find(req, DOMAIN, req.path["id"])
    changes = merged(DOMAIN, row, req.body["domain"])
    with req.world.database.write() as connection:
        DOMAINS.update(connection, row["id"], changes)
        if not changes.get("enabled", True):
            for user in USERS.find(connection, {"domain_id": row["id"]}):
                revoke_all(connection, user_id=user["id"])
            for project in PROJECTS.find(connection, {"domain_id": row["id"]}):
                revoke_all(connection, project_id=project["id"])
            revoke_all(connection, domain_id=row["id"])
    req.world.revoked(Revocation())
    return {"domain": view(req, DOMAIN, {**row, **changes})}


def _delete(req: Request) -> None:
    row = find(req, DOMAIN, req.path["id"])
    if row["enabled"]:
        raise DomainEnabled
    with req.world.database.write() as connection:
        for user in USERS.find(connection, {"domain_id": row["id"]}):
            remove_user(connection, user["id"])
        for project in PROJECTS.find(connection, {"domain_id": row["id"]}):
            remove_project(connection, project["id"])
        GRANTS.delete(connection, {"target_kind": "domain", "target_id": row["id"]})
        revoke_all(connection, domain_id=row["id"])
        DOMAINS.delete(connection, row["id"])
    req.world.revoked(Revocation())


OPS = (
    list_op(DOMAIN, "read"),
    Op("GET", "/v3/domains/{id}", _show),
    Op("POST", "/v3/domains", _create, policy="admin_required", body=_CREATE, ok=201, errors=(409,)),
    Op("PATCH", "/v3/domains/{id}", _update, policy="admin_required", body=_UPDATE, errors=(409,)),
    Op("DELETE", "/v3/domains/{id}", _delete, policy="admin_required", ok=204),
)
