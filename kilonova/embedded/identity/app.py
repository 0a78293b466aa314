"""The WSGI application of identity. It authenticates its own requests: the tokens it checks are its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from kilonova.core.context import Context
from kilonova.embedded.dialects import IDENTITY
from kilonova.embedded.identity import auth, catalogue, credentials, domains, limits, projects, roles, tokens, users
from kilonova.embedded.identity.access import ENVIRON_TOKEN, Policy
from kilonova.embedded.identity.tables import metadata
from kilonova.embedded.identity.world import Identity, Settings, Token
from kilonova.embedded.store import open_tables
from kilonova.http.app import App, Service
from kilonova.http.op import Answer, Op, Request
from kilonova.sql.engine import Database

_VERSION, _UPDATED = "v3.14", "2020-04-07T00:00:00Z"
_MEDIA = [{"base": "application/json", "type": "application/vnd.openstack.identity-v3+json"}]


def _version(req: Request) -> dict[str, Any]:
    links = [{"rel": "self", "href": f"{req.base_url}/v3/"}]
    return {"id": _VERSION, "status": "stable", "updated": _UPDATED, "links": links, "media-types": _MEDIA}


def _versions(req: Request) -> Answer:
    return Answer({"versions": {"values": [_version(req)]}}, headers=(("Location", f"{req.base_url}/v3/"),))


def _v3(req: Request) -> dict[str, Any]:
    return {"version": _version(req)}


OPS: tuple[Op, ...] = (
    Op("GET", "", _versions, ok=300, auth=False),
    Op("GET", "/", _versions, ok=300, auth=False),
    Op("GET", "/v3", _v3, auth=False),
    Op("GET", "/v3/", _v3, auth=False),
    *auth.OPS,
    *domains.OPS,
    *projects.OPS,
    *users.OPS,
    *roles.OPS,
    *catalogue.OPS,
    *credentials.OPS,
    *limits.OPS,
)

NOT_SERVED: tuple[tuple[str, str], ...] = (
    ("/v3/groups", "roles are granted to users only"),
    ("/v3/credentials", "no second factors and no EC2 keys are kept"),
    ("/v3/policies", "policy is the services' own"),
    ("/v3/role_inferences", "admin implies manager implies member implies reader, always"),
    ("/v3/roles/{id}/implies", "admin implies manager implies member implies reader, always"),
    ("/v3/domains/{id}/config", "there is one driver, the embedded database"),
    ("/v3/domains/{id}/groups/{id}/roles", "roles are granted to users only"),
    ("/v3/projects/{id}/groups/{id}/roles", "roles are granted to users only"),
    ("/v3/system/groups/{id}/roles", "roles are granted to users only"),
    ("/v3/projects/{id}/tags", "tags are set with the project"),
    ("/v3/users/{id}/groups", "roles are granted to users only"),
    ("/v3/users/{id}/access_rules", "application credentials have no access rules"),
    ("POST /v3/services, /v3/endpoints, /v3/regions", "the catalogue is that of the deployment"),
    ("/v3/OS-TRUST, /v3/OS-OAUTH1, /v3/OS-OAUTH2, /v3/OS-FEDERATION", "tokens come from passwords or credentials"),
    ("/v3/OS-EP-FILTER, /v3/OS-SIMPLE-CERT, /v3/OS-INHERIT, /v3/OS-REVOKE", "extensions that compute does not use"),
)
"""What Keystone has and this service does not, and why; these paths answer 404."""

Wsgi = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


def make_identity(database: Database, settings: Settings | None = None) -> Identity:
    """The identity world over a database, its tables made. One per process."""
    open_tables(database, metadata)
    return Identity(database, settings or Settings())


def make_app(identity: Identity, auth_uri: str = "") -> Wsgi:
    """The WSGI callable, to be mounted under its prefix. `auth_uri` is what a 401 names."""
    service = Service("identity", OPS, identity, IDENTITY, policy=Policy(), auth_uri=auth_uri)
    return _Authenticated(identity, App(service))


class _Authenticated:
    """Puts who asks into the environment before the application looks."""

    def __init__(self, identity: Identity, app: App) -> None:
        self._identity = identity
        self._app = app

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        # What stands there already is another service's idea of the caller, never ours.
        environ.pop("kilonova.context", None)
        environ.pop(ENVIRON_TOKEN, None)
        secret = environ.get("HTTP_X_AUTH_TOKEN")
        token = tokens.find(self._identity, secret) if secret else None
        if token is not None:
            environ[ENVIRON_TOKEN] = token
            environ["kilonova.context"] = _context(token)
        return self._app(environ, start_response)


def _context(token: Token) -> Context:
    return Context(
        user_id=token.user["id"],
        user_domain_id=token.user["domain_id"],
        project_id=token.project["id"] if token.project else None,
        project_domain_id=token.project["domain_id"] if token.project else None,
        domain_id=token.domain["id"] if token.domain else None,
        system_scope="all" if token.system else None,
        roles=[role["name"] for role in token.roles],
        overwrite=False,
    )
