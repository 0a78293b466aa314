"""Logging in, and what a token says: `/v3/auth/…`."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from kilonova.core.errors import Forbidden
from kilonova.embedded.identity import grants, tokens
from kilonova.embedded.identity.access import NotAuthorized, caller
from kilonova.embedded.identity.catalogue import catalogue
from kilonova.embedded.identity.domains import DOMAIN
from kilonova.embedded.identity.login import login
from kilonova.embedded.identity.nouns import ANY_QUERY, listed, view
from kilonova.embedded.identity.projects import projects_of, usable_domains
from kilonova.embedded.identity.world import Token
from kilonova.embedded.store import Row
from kilonova.http.fields import Any_, Arr, Field, Obj, Str, wrap
from kilonova.http.op import Answer, Op, Request

_LOGIN = wrap("auth", Obj(
    Field("identity", Obj(Field("methods", Arr(Str(), min=1), required=True), open=True), required=True),
    Field("scope", Any_),
    open=True,
))  # fmt: skip


class NoCatalogue(Forbidden):
    code, message = "no_catalogue", "An unscoped token has no catalogue."


def _stamp(moment: datetime) -> str:
    return moment.isoformat(timespec="microseconds") + "Z"


def _named(row: Row) -> dict[str, Any]:
    return {"id": row["id"], "name": row["name"]}


def token_view(req: Request, token: Token) -> dict[str, Any]:
    """The `token` object. The catalogue is in it unless the query says `nocatalog` or the token is unscoped."""
    shown: dict[str, Any] = {
        "methods": list(token.methods),
        "user": {**_named(token.user), "domain": _named(token.user_domain), "password_expires_at": None},
        "audit_ids": [token.audit_id],
        "issued_at": _stamp(token.issued_at),
        "expires_at": _stamp(token.expires_at),
    }
    if token.project is not None and token.project_domain is not None:
        shown["project"] = {**_named(token.project), "domain": _named(token.project_domain)}
        shown["is_domain"] = False
    elif token.domain is not None:
        shown["domain"] = _named(token.domain)
    elif token.system:
        shown["system"] = {"all": True}
    else:
        return shown
    shown["roles"] = [_named(role) for role in token.roles]
    if token.credential is not None:
        shown["application_credential"] = {
            **_named(token.credential), "restricted": not token.credential["unrestricted"]
        }  # fmt: skip
    if "nocatalog" not in req.query:
        with req.world.database.read() as connection:
            shown["catalog"] = catalogue(connection, token)
    return shown


def _issue(req: Request) -> Answer:
    secret, token = login(req.world, req.body["auth"])
    return Answer({"token": token_view(req, token)}, headers=(("X-Subject-Token", secret), ("Vary", "X-Auth-Token")))


def _subject(req: Request) -> tuple[str, Token]:
    """The token asked about: everybody may ask about their own, services and readers about any."""
    secret = req.header("X-Subject-Token") or ""
    expired = "allow_expired" in req.query and req.query["allow_expired"][-1].lower() in ("1", "true")
    if tokens.token_id(secret) != caller(req).id and not req.allowed("service_or_read"):
        raise NotAuthorized(rule="identity:validate_token")
    return secret, tokens.get(req.world, secret, allow_expired=expired)


def _validate(req: Request) -> Answer:
    secret, token = _subject(req)
    return Answer({"token": token_view(req, token)}, headers=(("X-Subject-Token", secret), ("Vary", "X-Auth-Token")))


def _check(req: Request) -> Answer:
    secret, _ = _subject(req)
    return Answer(headers=(("X-Subject-Token", secret), ("Vary", "X-Auth-Token")))


def _revoke(req: Request) -> None:
    secret = req.header("X-Subject-Token") or ""
    if tokens.token_id(secret) != caller(req).id and not req.allowed("admin_required"):
        raise NotAuthorized(rule="identity:revoke_token")
    tokens.revoke(req.world, secret)


def _catalogue(req: Request) -> dict[str, Any]:
    token = caller(req)
    if not token.roles:
        raise NoCatalogue
    with req.world.database.read() as connection:
        return listed(req, "catalog", catalogue(connection, token))


def _projects(req: Request) -> dict[str, Any]:
    return projects_of(req, str(req.ctx.user_id))


def _domains(req: Request) -> dict[str, Any]:
    return listed(req, "domains", [view(req, DOMAIN, row) for row in usable_domains(req)])


def _system(req: Request) -> dict[str, Any]:
    with req.world.database.read() as connection:
        found = grants.targets(connection, str(req.ctx.user_id), "system")
    return listed(req, "system", [{"all": True}] if found else [])


_TOKENS = "/v3/auth/tokens"
OPS = (
    Op("POST", _TOKENS, _issue, body=_LOGIN, query=ANY_QUERY, ok=201, auth=False),
    Op("GET", _TOKENS, _validate, query=ANY_QUERY),
    Op("HEAD", _TOKENS, _check, query=ANY_QUERY, ok=200),
    Op("DELETE", _TOKENS, _revoke, ok=204),
    Op("GET", "/v3/auth/catalog", _catalogue),
    Op("GET", "/v3/auth/projects", _projects, query=ANY_QUERY),
    Op("GET", "/v3/auth/domains", _domains),
    Op("GET", "/v3/auth/system", _system),
)
