"""What every request to identity works with, and how the rest of the process hears of revocations."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from kilonova.core import clock
from kilonova.embedded.identity.passwords import Verifier
from kilonova.embedded.store import Row
from kilonova.sql.engine import Database

_CACHE_SECONDS = 30.0  # a bound for changes made by another process; this one's own are seen at once
_CACHE_SIZE = 4096


@dataclass(frozen=True)
class Settings:
    """Lives in seconds: of a token, and how long an expired one may still be looked up by a service."""

    token_expiration: float = 3600.0
    allow_expired_window: float = 172800.0


@dataclass(frozen=True)
class Scope:
    """What a token is for: one of the three, or nothing (unscoped)."""

    project_id: str | None = None
    domain_id: str | None = None
    system: bool = False


@dataclass(frozen=True)
class Token:
    """A token with everything it says. `id` is the SHA-256 of what the client holds, `domain_*` the domains' rows."""

    id: str
    user: Row
    user_domain: Row
    project: Row | None
    project_domain: Row | None
    domain: Row | None
    system: bool
    roles: tuple[Row, ...]
    methods: tuple[str, ...]
    audit_id: str
    issued_at: datetime
    expires_at: datetime
    credential: Row | None

    @property
    def scope(self) -> Scope:
        return Scope(self.project["id"] if self.project else None, self.domain["id"] if self.domain else None,
                     self.system)  # fmt: skip

    def has_role(self, name: str) -> bool:
        return any(role["name"] == name for role in self.roles)


@dataclass(frozen=True)
class Revocation:
    """What is no longer to be trusted: one token (by its SHA-256), or all of a user or of a project.

    With everything None: all tokens. `secret` is the one token's text, for those who know it by that.
    """

    token: str | None = None
    secret: str | None = field(default=None, repr=False)
    user_id: str | None = None
    project_id: str | None = None

    def covers(self, token: Token) -> bool:
        """Whether the token is one of those."""
        if self == Revocation():
            return True
        project_id = token.project["id"] if token.project else None
        return (
            self.token == token.id
            or (self.user_id is not None and self.user_id == token.user["id"])
            or (self.project_id is not None and self.project_id == project_id)
        )


class TokenCache:
    """Tokens that were valid a moment ago. What was read before a revocation is not kept after it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tokens: OrderedDict[str, tuple[Token, float]] = OrderedDict()
        self.generation = 0
        self.purged_at = clock.monotonic()  # when ended tokens were last removed from the database

    def get(self, key: str) -> Token | None:
        with self._lock:
            token, until = self._tokens.get(key, (None, 0.0))
        return token if until > clock.monotonic() else None

    def put(self, token: Token, generation: int) -> None:
        """Keep a token that was read from the database when the cache was of that generation."""
        with self._lock:
            if generation == self.generation:
                self._tokens[token.id] = (token, clock.monotonic() + _CACHE_SECONDS)
                while len(self._tokens) > _CACHE_SIZE:
                    self._tokens.popitem(last=False)

    def drop(self, revocation: Revocation) -> None:
        with self._lock:
            self.generation += 1
            for key in [key for key, (token, _) in self._tokens.items() if revocation.covers(token)]:
                del self._tokens[key]


@dataclass(frozen=True)
class Identity:
    """The database, the settings and what is remembered in memory. One of these per process serves the API."""

    database: Database
    settings: Settings = Settings()
    verifier: Verifier = field(default_factory=Verifier)
    cache: TokenCache = field(default_factory=TokenCache)
    _hooks: list[Callable[[Revocation], None]] = field(default_factory=list)

    def on_revoke(self, callback: Callable[[Revocation], None]) -> None:
        """Have `callback` called, after the commit, with each revocation or change of what tokens say."""
        self._hooks.append(callback)

    def revoked(self, revocation: Revocation) -> None:
        """Forget what is remembered of these tokens, here and in the process. To be called after the commit."""
        self.cache.drop(revocation)
        for hook in self._hooks:
            hook(revocation)
