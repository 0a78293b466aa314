"""Application credentials: a user's own means to log in to one project, with some of their roles there."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from kilonova.core import clock, ids
from kilonova.core.errors import Forbidden, Invalid, Unsupported
from kilonova.embedded.identity.access import caller, user_of_path
from kilonova.embedded.identity.nouns import ANY_QUERY, NounNotFound, listed
from kilonova.embedded.identity.tables import CREDENTIALS, ROLES
from kilonova.embedded.identity.tokens import revoke_all
from kilonova.embedded.identity.world import Revocation, Token
from kilonova.embedded.store import Row, page
from kilonova.http.fields import Any_, Arr, Bool, Field, Obj, Str, wrap
from kilonova.http.op import Op, Request

_ROLE = Obj(Field("id", Str(1, 64)), Field("name", Str(1, 255)), open=True, min=1)
_CREATE = wrap("application_credential", Obj(
    Field("name", Str(1, 255), required=True),
    Field("description", Str(null=True)),
    Field("secret", Str(1, 4096, null=True)),
    Field("expires_at", Str(null=True)),
    Field("roles", Arr(_ROLE, null=True)),
    Field("unrestricted", Bool(strict=True, null=True)),
    Field("access_rules", Any_),
    Field("project_id", Str(null=True)),
))  # fmt: skip


class NeedsProject(Invalid):
    code, message = "needs_project", "An application credential is made with a token for a project."


class RoleNotHeld(Invalid):
    code, message = "role_not_held", "The roles must be some of those of the token; {role} is not."


class BadExpiry(Invalid):
    code, message = "bad_expiry", "expires_at must be a time in the future, YYYY-MM-DDTHH:MM:SS in UTC."


class CredentialRestricted(Forbidden):
    code = "credential_restricted"
    message = "A restricted application credential may not make, show or remove application credentials."


class AccessRulesUnsupported(Unsupported):
    code, message = "access_rules_unsupported", "Access rules are not served by the embedded identity service."


def _unrestricted(req: Request) -> Token:
    token = caller(req)
    if token.credential is not None and not token.credential["unrestricted"]:
        raise CredentialRestricted
    return token


def _view(req: Request, row: Row, roles: dict[str, Row]) -> dict[str, Any]:
    held = [{"id": key, "name": roles[key]["name"], "domain_id": None} for key in row["role_ids"] if key in roles]
    expires = row.get("expires_at")
    return {
        "id": row["id"], "name": row["name"], "description": row.get("description"), "user_id": row["user_id"],
        "project_id": row["project_id"], "roles": held, "unrestricted": row["unrestricted"], "system": None,
        "expires_at": expires.isoformat(timespec="microseconds") if expires else None,
        "links": {"self": f"{req.base_url}/v3/users/{row['user_id']}/application_credentials/{row['id']}"},
    }  # fmt: skip


def _create(req: Request) -> dict[str, Any]:
    token, body = _unrestricted(req), req.body["application_credential"]
    if token.project is None:
        raise NeedsProject
    if body.get("access_rules"):
        raise AccessRulesUnsupported
    secret = body.get("secret") or ids.new_password(64)
    row = {
        "id": ids.new_hex(), "name": body["name"], "description": body.get("description"),
        "user_id": token.user["id"], "project_id": token.project["id"], "secret_hash": req.world.verifier.hash(secret),
        "role_ids": _roles(token, body.get("roles")), "unrestricted": bool(body.get("unrestricted")),
        "expires_at": _expiry(body.get("expires_at")),
    }  # fmt: skip
    with req.world.database.write() as connection:
        CREDENTIALS.insert(connection, row)
    shown = _view(req, row, {role["id"]: role for role in token.roles})
    return {"application_credential": {**shown, "secret": secret}}


def _roles(token: Token, wanted: list[dict[str, str]] | None) -> list[str]:
    if not wanted:
        return [role["id"] for role in token.roles]
    found = []
    for reference in wanted:
        role = next((role for role in token.roles if role["id"] == reference.get("id", role["id"])
                     and role["name"] == reference.get("name", role["name"])), None)  # fmt: skip
        if role is None:
            raise RoleNotHeld(role=reference.get("name") or reference.get("id"))
        found.append(role["id"])
    return found


def _expiry(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise BadExpiry from None
    moment = moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo else moment
    if moment <= clock.utcnow():
        raise BadExpiry
    return moment


def _find(req: Request) -> Row:
    with req.world.database.read() as connection:
        row = CREDENTIALS.get(connection, req.path["id"])
    if row is None or row["user_id"] != req.path["user_id"]:
        raise NounNotFound(noun="application credential", id=req.path["id"])
    return row


def _list(req: Request) -> dict[str, Any]:
    where = {"user_id": req.path["user_id"]} | ({"name": req.query["name"]} if "name" in req.query else {})
    with req.world.database.read() as connection:
        rows = page(CREDENTIALS.find(connection, where), sort=(("name", "asc"),))[0]
        roles = {role["id"]: role for role in ROLES.find(connection)}
    return listed(req, "application_credentials", [_view(req, row, roles) for row in rows])


def _show(req: Request) -> dict[str, Any]:
    row = _find(req)
    with req.world.database.read() as connection:
        roles = {role["id"]: role for role in ROLES.find(connection)}
    return {"application_credential": _view(req, row, roles)}


def _delete(req: Request) -> None:
    _unrestricted(req)
    row = _find(req)
    with req.world.database.write() as connection:
        CREDENTIALS.delete(connection, row["id"])
        revoke_all(connection, credential_id=row["id"])
    req.world.revoked(Revocation(user_id=row["user_id"]))


_PATH = "/v3/users/{user_id}/application_credentials"
OPS = (
    Op("GET", _PATH, _list, policy="read_or_owner", target=user_of_path, query=ANY_QUERY),
    Op("POST", _PATH, _create, policy="owner", target=user_of_path, body=_CREATE, ok=201, errors=(409,)),
    Op("GET", f"{_PATH}/{{id}}", _show, policy="read_or_owner", target=user_of_path),
    Op("DELETE", f"{_PATH}/{{id}}", _delete, policy="admin_or_owner", target=user_of_path, ok=204),
)
