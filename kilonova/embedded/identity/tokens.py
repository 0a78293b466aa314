"""Tokens: opaque random words, known to the database by their SHA-256 only.

What a token says (roles, names, whether it still holds) is read from the accounts when it is checked, not stored
with it, so a token can never outlive what it was given for. Knows nothing of passwords or requests.
"""

from __future__ import annotations

import hashlib
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from kilonova.core import clock, ids
from kilonova.core.errors import NotFound, Unauthenticated
from kilonova.embedded.identity import grants
from kilonova.embedded.identity.tables import CREDENTIALS, DOMAINS, PROJECTS, TOKENS, USERS
from kilonova.embedded.identity.world import Identity, Revocation, Scope, Token
from kilonova.embedded.store import Row

_SECRET_BYTES = 32
_purge = sa.delete(TOKENS.table).where(TOKENS.table.c.expires_at < sa.bindparam("before"))
_PURGE_SECONDS = 300.0


class BadCredentials(Unauthenticated):
    """Never says which part was wrong."""

    code, message = "bad_credentials", "The request you have made requires authentication."


class TokenNotFound(NotFound):
    code, message = "token_not_found", "Could not find token."


def token_id(secret: str) -> str:
    """What a token is known by: the SHA-256 of its text, in hex."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def issue(
    identity: Identity, user_id: str, scope: Scope, methods: tuple[str, ...],
    *, until: datetime | None = None, credential_id: str | None = None,
) -> tuple[str, Token]:  # fmt: skip
    """A new token: its text, for the client's eyes only, and what it says.

    It ends after the configured life, or at `until` when that is sooner. Raises BadCredentials when the user may not
    have that scope.
    """
    secret = ids.secret_bytes(_SECRET_BYTES).hex()
    now = clock.utcnow()
    expires = now + timedelta(seconds=identity.settings.token_expiration)
    row: Row = {
        "id": token_id(secret), "user_id": user_id, "project_id": scope.project_id, "domain_id": scope.domain_id,
        "is_system": scope.system, "credential_id": credential_id, "methods": list(methods),
        "audit_id": ids.new_hex(), "issued_at": now, "expires_at": min(expires, until or expires),
    }  # fmt: skip
    generation = identity.cache.generation
    with identity.database.write() as connection:
        token = _assemble(connection, row)
        if token is None:
            raise BadCredentials
        _purge_expired(identity, connection, now)
        TOKENS.insert(connection, row)
    identity.cache.put(token, generation)
    return secret, token


def find(identity: Identity, secret: str, *, allow_expired: bool = False) -> Token | None:
    """What a token says, or None when it does not hold (any more).

    `allow_expired` also answers tokens that ended within the configured window: a service may finish with them what
    it began.
    """
    key = token_id(secret)
    found = identity.cache.get(key)
    if found is None:
        generation = identity.cache.generation
        with identity.database.read() as connection:
            row = TOKENS.get(connection, key)
            found = _assemble(connection, row) if row is not None else None
        if found is None:
            return None
        identity.cache.put(found, generation)
    grace = identity.settings.allow_expired_window if allow_expired else 0.0
    return found if clock.utcnow() < found.expires_at + timedelta(seconds=grace) else None


def get(identity: Identity, secret: str, *, allow_expired: bool = False) -> Token:
    """The same; raises TokenNotFound."""
    found = find(identity, secret, allow_expired=allow_expired)
    if found is None:
        raise TokenNotFound
    return found


def revoke(identity: Identity, secret: str) -> None:
    """End one token now. Raises TokenNotFound."""
    key = token_id(secret)
    with identity.database.write() as connection:
        if not TOKENS.delete(connection, key):
            raise TokenNotFound
    identity.revoked(Revocation(token=key, secret=secret))


def revoke_all(connection: Connection, **of: Any) -> None:
    """End every token with these values (user_id, project_id …); the caller tells `Identity.revoked` afterwards."""
    TOKENS.delete(connection, of)


def _assemble(connection: Connection, row: Row) -> Token | None:
    """The token of a row; None when user, target or roles are gone or switched off."""
    user = USERS.get(connection, row["user_id"])
    user_domain = _live(DOMAINS.get(connection, user["domain_id"])) if _live(user) and user else None
    if user is None or user_domain is None:
        return None
    project = project_domain = domain = credential = None
    if row["project_id"]:
        project = _live(PROJECTS.get(connection, row["project_id"]))
        project_domain = _live(DOMAINS.get(connection, project["domain_id"])) if project else None
        if project_domain is None:
            return None
    if row["domain_id"]:
        domain = _live(DOMAINS.get(connection, row["domain_id"]))
        if domain is None:
            return None
    roles = _roles(connection, row)
    if row["credential_id"]:
        credential = CREDENTIALS.get(connection, row["credential_id"])
        if credential is None:
            return None
        roles = [role for role in roles if role["id"] in set(credential["role_ids"])]
    if not roles and (project or domain or row["is_system"]):
        return None
    return Token(
        id=row["id"], user=user, user_domain=user_domain, project=project, project_domain=project_domain,
        domain=domain, system=bool(row["is_system"]), roles=tuple(roles), methods=tuple(row["methods"]),
        audit_id=row["audit_id"], issued_at=row["issued_at"], expires_at=row["expires_at"], credential=credential,
    )  # fmt: skip


def _roles(connection: Connection, row: Row) -> list[Row]:
    user_id = row["user_id"]
    if row["project_id"]:
        return grants.effective(connection, user_id, "project", row["project_id"])
    if row["domain_id"]:
        return grants.effective(connection, user_id, "domain", row["domain_id"])
    if row["is_system"]:
        return grants.effective(connection, user_id, "system", grants.SYSTEM)
    return []


def _live(row: Row | None) -> Row | None:
    return row if row is not None and row["enabled"] else None


def _purge_expired(identity: Identity, connection: Connection, now: datetime) -> None:
    if clock.monotonic() - identity.cache.purged_at >= _PURGE_SECONDS:
        identity.cache.purged_at = clock.monotonic()
        connection.execute(_purge, {"before": now - timedelta(seconds=identity.settings.allow_expired_window)})
