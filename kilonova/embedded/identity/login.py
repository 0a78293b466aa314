"""From the body of a login to who it is and for what: passwords, tokens, application credentials; scopes.

Whatever is wrong about the person or the scope is the same BadCredentials; only a body that says too little to be
looked at is Invalid.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy.engine import Connection

from kilonova.core import clock
from kilonova.core.errors import Invalid
from kilonova.embedded.identity import grants, tokens
from kilonova.embedded.identity.tables import CREDENTIALS, DOMAINS, PROJECTS, USERS
from kilonova.embedded.identity.tokens import BadCredentials
from kilonova.embedded.identity.world import Identity, Scope, Token
from kilonova.embedded.store import Row


class LoginIncomplete(Invalid):
    code, message = "login_incomplete", "Expecting to find {what} in the login request."


@dataclass(frozen=True)
class Subject:
    """Who logged in and how; the scope that the means itself is bound to, and until when it holds."""

    user: Row
    methods: tuple[str, ...]
    bound: Scope | None = None
    until: datetime | None = None
    credential_id: str | None = None


def login(identity: Identity, auth: dict[str, Any]) -> tuple[str, Token]:
    """A new token for the `auth` member of a login body. Raises BadCredentials and LoginIncomplete."""
    with identity.database.read() as connection:
        subject = _authenticate(identity, connection, auth["identity"])
        scope = _scope(connection, subject, auth.get("scope"))
    return tokens.issue(
        identity, subject.user["id"], scope, subject.methods, until=subject.until, credential_id=subject.credential_id
    )


def _authenticate(identity: Identity, connection: Connection, how: dict[str, Any]) -> Subject:
    subjects = []
    for method in dict.fromkeys(how["methods"]):
        if method not in _METHODS:
            raise BadCredentials
        if method not in how:
            raise LoginIncomplete(what=method)
        subjects.append(_METHODS[method](identity, connection, how[method]))
    if not subjects or len({subject.user["id"] for subject in subjects}) != 1:
        raise BadCredentials
    methods = tuple(dict.fromkeys(method for subject in subjects for method in subject.methods))
    # With several means, the one that is bound to a scope or a time binds the whole.
    first = next((subject for subject in subjects if subject.bound), subjects[0])
    ends = [subject.until for subject in subjects if subject.until]
    return Subject(first.user, methods, first.bound, min(ends, default=None), first.credential_id)


def _password(identity: Identity, connection: Connection, how: dict[str, Any]) -> Subject:
    given = how.get("user")
    if not isinstance(given, dict) or not isinstance(given.get("password"), str):
        raise LoginIncomplete(what="user and password")
    user = _user(connection, given)
    right = identity.verifier.matches(given["password"], user["password_hash"] if user else None)
    if user is None or not right:
        raise BadCredentials
    return Subject(user, ("password",))


def _token(identity: Identity, connection: Connection, how: dict[str, Any]) -> Subject:
    if not isinstance(how.get("id"), str):
        raise LoginIncomplete(what="the id of the token")
    token = tokens.find(identity, how["id"])
    if token is None:
        raise BadCredentials
    bound = token.scope if token.credential else None
    credential_id = token.credential["id"] if token.credential else None
    methods = tuple(dict.fromkeys(("token", *token.methods)))
    return Subject(token.user, methods, bound, token.expires_at, credential_id)


def _application_credential(identity: Identity, connection: Connection, how: dict[str, Any]) -> Subject:
    if not isinstance(how.get("secret"), str):
        raise LoginIncomplete(what="the secret of the application credential")
    credential = None
    if isinstance(how.get("id"), str):
        credential = CREDENTIALS.get(connection, how["id"])
    elif isinstance(how.get("name"), str) and isinstance(how.get("user"), dict):
        owner = _user(connection, how["user"])
        where = {"user_id": owner["id"] if owner else "", "name": how["name"]}
        credential = next(iter(CREDENTIALS.find(connection, where)), None)
    else:
        raise LoginIncomplete(what="the id, or the name and user, of the application credential")
    right = identity.verifier.matches(how["secret"], credential["secret_hash"] if credential else None)
    user = USERS.get(connection, credential["user_id"]) if credential else None
    if credential is None or user is None or not right:
        raise BadCredentials
    if credential["expires_at"] is not None and credential["expires_at"] <= clock.utcnow():
        raise BadCredentials
    scope = Scope(project_id=credential["project_id"])
    return Subject(user, ("application_credential",), scope, credential["expires_at"], credential["id"])


_METHODS = {"password": _password, "token": _token, "application_credential": _application_credential}


def _user(connection: Connection, given: dict[str, Any]) -> Row | None:
    if isinstance(given.get("id"), str):
        return USERS.get(connection, given["id"])
    if not isinstance(given.get("name"), str):
        raise LoginIncomplete(what="the id or name of the user")
    domain = _domain(connection, given.get("domain"), "the domain of the user")
    where = {"domain_id": domain["id"] if domain else "", "name": given["name"]}
    return next(iter(USERS.find(connection, where)), None)


def _domain(connection: Connection, given: Any, what: str) -> Row | None:
    if isinstance(given, dict) and isinstance(given.get("id"), str):
        return DOMAINS.get(connection, given["id"])
    if isinstance(given, dict) and isinstance(given.get("name"), str):
        return next(iter(DOMAINS.find(connection, {"name": given["name"]})), None)
    raise LoginIncomplete(what=what)


def _scope(connection: Connection, subject: Subject, wanted: Any) -> Scope:
    scope = _wanted(connection, subject, wanted)
    if subject.bound is not None:
        if wanted is not None and scope != subject.bound:
            raise BadCredentials
        return subject.bound
    return scope


def _wanted(connection: Connection, subject: Subject, wanted: Any) -> Scope:
    if wanted is None:
        return _default_scope(connection, subject.user)
    if wanted == "unscoped":
        return Scope()
    if not isinstance(wanted, dict) or len(wanted) != 1:
        raise LoginIncomplete(what="exactly one of project, domain, system")
    if "unscoped" in wanted:
        return Scope()
    if "system" in wanted:
        if wanted["system"] != {"all": True}:
            raise LoginIncomplete(what="system: {all: true}")
        return Scope(system=True)
    if "domain" in wanted:
        domain = _domain(connection, wanted["domain"], "the id or name of the domain")
        if domain is None:
            raise BadCredentials
        return Scope(domain_id=domain["id"])
    if "project" in wanted:
        return _project(connection, wanted["project"])
    raise LoginIncomplete(what="project, domain or system")


def _project(connection: Connection, given: Any) -> Scope:
    if isinstance(given, dict) and isinstance(given.get("id"), str):
        return Scope(project_id=given["id"])
    if not isinstance(given, dict) or not isinstance(given.get("name"), str):
        raise LoginIncomplete(what="the id or name of the project")
    domain = _domain(connection, given.get("domain"), "the domain of the project")
    where = {"domain_id": domain["id"] if domain else "", "name": given["name"]}
    found = next(iter(PROJECTS.find(connection, where)), None)
    if found is None:
        raise BadCredentials
    return Scope(project_id=found["id"])


def _default_scope(connection: Connection, user: Row) -> Scope:
    """The user's default project where that can be had, else unscoped."""
    project_id = user["default_project_id"]
    if project_id and grants.effective(connection, user["id"], "project", project_id):
        project = PROJECTS.get(connection, project_id)
        if project is not None and project["enabled"]:
            return Scope(project_id=project_id)
    return Scope()
