"""Users: list, show, create, update, delete, and the change of one's own password."""

from __future__ import annotations

from typing import Any

from sqlalchemy.engine import Connection

from kilonova.core import ids
from kilonova.embedded.identity.access import user_of_path
from kilonova.embedded.identity.nouns import Noun, NounNotFound, find, list_op, merged, split, view
from kilonova.embedded.identity.projects import own_domain
from kilonova.embedded.identity.tables import CREDENTIALS, DOMAINS, GRANTS, USERS
from kilonova.embedded.identity.tokens import BadCredentials, revoke_all
from kilonova.embedded.identity.world import Revocation
from kilonova.embedded.store import Row
from kilonova.http.fields import Bool, Field, Obj, Str, wrap
from kilonova.http.op import Op, Request

_SHOWN = ("id", "name", "domain_id", "default_project_id", "description", "enabled")
USER = Noun("user", "users", USERS, _SHOWN, {"password_expires_at": None, "options": {}})
_FIELDS = (
    Field("password", Str(1, 4096, null=True)),
    Field("default_project_id", Str(max=64, null=True)),
    Field("description", Str(null=True)),
    Field("enabled", Bool(strict=True)),
)
_CREATE = wrap("user", Obj(Field("name", Str(1, 255), required=True), Field("domain_id", Str(max=64, null=True)),
                           *_FIELDS, open=True))  # fmt: skip
_UPDATE = wrap("user", Obj(Field("name", Str(1, 255)), *_FIELDS, open=True))
_PASSWORD = wrap("user", Obj(Field("password", Str(1, 4096), required=True),
                             Field("original_password", Str(), required=True)))  # fmt: skip


def remove_user(connection: Connection, user_id: str) -> None:
    """Take a user away with everything that hangs on them."""
    GRANTS.delete(connection, {"user_id": user_id})
    CREDENTIALS.delete(connection, {"user_id": user_id})
    revoke_all(connection, user_id=user_id)
    USERS.delete(connection, user_id)


def _view(req: Request, row: Row) -> dict[str, Any]:
    shown = view(req, USER, row)
    if shown["default_project_id"] is None:
        del shown["default_project_id"]
    return shown


def _show(req: Request) -> dict[str, Any]:
    if req.ctx.user_id != req.path["id"]:
        req.authorize("read")
    return {"user": _view(req, find(req, USER, req.path["id"]))}


def _create(req: Request) -> dict[str, Any]:
    body = req.body["user"]
    row = {"id": ids.new_hex(), "enabled": True, "description": "", "default_project_id": None, **split(USER, body)}
    row["domain_id"] = body.get("domain_id") or own_domain(req)
    if body.get("password") is not None:
        row["password_hash"] = req.world.verifier.hash(body["password"])
    with req.world.database.write() as connection:
        if DOMAINS.get(connection, row["domain_id"]) is None:
            raise NounNotFound(noun="domain", id=row["domain_id"])
        USERS.insert(connection, row)
    return {"user": _view(req, row)}


def _update(req: Request) -> dict[str, Any]:
    body = req.body["user"]
    row = find(req, USER, req.path["id"])
    changes = merged(USER, row, body)
    changes.pop("domain_id", None)
    if "password" in body:
        changes["password_hash"] = req.world.verifier.hash(body["password"]) if body["password"] is not None else None
    _store(req, row["id"], changes, revoke="password" in body or not changes.get("enabled", True))
    return {"user": _view(req, {**row, **changes})}


def _change_password(req: Request) -> None:
    given = req.body["user"]
    row = find(req, USER, req.path["user_id"])
    if not req.world.verifier.matches(given["original_password"], row["password_hash"]):
        raise BadCredentials
    _store(req, row["id"], {"password_hash": req.world.verifier.hash(given["password"])}, revoke=True)


def _store(req: Request, user_id: str, changes: Row, *, revoke: bool) -> None:
    with req.world.database.write() as connection:
        USERS.update(connection, user_id, changes)
        if revoke:
            revoke_all(connection, user_id=user_id)
    req.world.revoked(Revocation(user_id=user_id))


def _delete(req: Request) -> None:
    row = find(req, USER, req.path["id"])
    with req.world.database.write() as connection:
        remove_user(connection, row["id"])
    req.world.revoked(Revocation(user_id=row["id"]))


OPS = (
    list_op(USER, "read"),
    Op("GET", "/v3/users/{id}", _show),
    Op("POST", "/v3/users", _create, policy="admin_required", body=_CREATE, ok=201, errors=(409,)),
    Op("PATCH", "/v3/users/{id}", _update, policy="admin_required", body=_UPDATE, errors=(409,)),
    Op("DELETE", "/v3/users/{id}", _delete, policy="admin_required", ok=204),
    Op("POST", "/v3/users/{user_id}/password", _change_password, policy="owner", target=user_of_path,
       body=_PASSWORD, ok=204),
)  # fmt: skip
