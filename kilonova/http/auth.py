"""Who asks: keystonemiddleware's answer for a token, remembered for at most a minute.

The identity headers it set are kept per (token, service token) and replayed; only names of a fixed list, so that
nothing else of one request reaches another. Whoever revokes a token in this process says so (`forget`); a race
between a check and a revocation is closed by a counter. It must not know routes or policies.
"""

from __future__ import annotations

import hashlib
import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from kilonova.clients.rest import Transport
from kilonova.core import clock
from kilonova.core.context import Context, preserved

LOG = logging.getLogger(__name__)

MEMO_SECONDS = 60.0
MEMO_SIZE = 10_000
CACHE_KEY = "kilonova.tokens"  # environ key, and the value of keystonemiddleware's option `cache`

_IDENTITY = (
    "DOMAIN_ID", "DOMAIN_NAME", "PROJECT_ID", "PROJECT_NAME", "PROJECT_DOMAIN_ID", "PROJECT_DOMAIN_NAME",
    "USER_ID", "USER_NAME", "USER_DOMAIN_ID", "USER_DOMAIN_NAME", "ROLES",
)  # fmt: skip
IDENTITY_HEADERS: tuple[str, ...] = (
    *(f"HTTP_X_{name}" for name in _IDENTITY),
    *(f"HTTP_X_SERVICE_{name}" for name in _IDENTITY),
    "HTTP_X_IDENTITY_STATUS", "HTTP_X_SERVICE_IDENTITY_STATUS", "HTTP_X_IS_ADMIN_PROJECT",
    "HTTP_OPENSTACK_SYSTEM_SCOPE", "HTTP_X_SERVICE_CATALOG",
    "HTTP_X_ROLE", "HTTP_X_USER", "HTTP_X_TENANT_ID", "HTTP_X_TENANT_NAME", "HTTP_X_TENANT",
)  # fmt: skip


class TokenCache:
    """A bounded, thread-safe cache with the interface keystonemiddleware wants: `get(key)`, `set(key, value, time=)`.

    `time` in seconds. The least recently used entry leaves first.
    """

    def __init__(self, size: int = MEMO_SIZE) -> None:
        self._size = size
        self._lock = threading.Lock()
        self._rows: OrderedDict[Any, tuple[float, Any]] = OrderedDict()

    def get(self, key: Any) -> Any:
        """The value, or None when there is none or its time is over."""
        with self._lock:
            row = self._rows.get(key)
            if row is None:
                return None
            if row[0] <= clock.monotonic():
                del self._rows[key]
                return None
            self._rows.move_to_end(key)
            return row[1]

    def set(self, key: Any, value: Any, time: float = MEMO_SECONDS) -> None:
        """Keep a value for so many seconds."""
        with self._lock:
            self._rows[key] = (clock.monotonic() + time, value)
            self._rows.move_to_end(key)
            while len(self._rows) > self._size:
                self._rows.popitem(last=False)

    def delete(self, matching: Callable[[Any], bool]) -> None:
        """Drop the entries whose key matches."""
        with self._lock:
            for key in [key for key in self._rows if matching(key)]:
                del self._rows[key]

    def clear(self) -> None:
        """Drop everything."""
        with self._lock:
            self._rows.clear()

    def __len__(self) -> int:
        return len(self._rows)


def anonymous(environ: Mapping[str, Any]) -> None:
    """Make the request's ids this thread's context, as long as nobody is known to ask."""
    Context(
        request_id=environ.get("openstack.request_id"), global_request_id=environ.get("openstack.global_request_id")
    )


@dataclass(frozen=True, slots=True)
class Refusal:
    """Authentication could not be done: an answer to give in its place."""

    status: str
    headers: list[tuple[str, str]]
    body: list[bytes]


class Authenticates(Protocol):
    """What the middleware asks who a request's caller is."""

    def authenticate(self, environ: dict[str, Any]) -> Refusal | None:
        """Fill the identity headers of a request; `HTTP_X_IDENTITY_STATUS` is `Confirmed` when they are true."""
        ...


class Auth:
    """Authenticates requests against the identity service that `[keystone_authtoken]` names.

    `transport` carries the calls to it (None: keystonemiddleware's own sockets). `overrides` are keystonemiddleware
    options by name, stronger than the configuration. One object may serve several services. Nothing is imported or
    connected before the first token is seen; `warm` does it earlier.
    """

    def __init__(
        self, conf: Any, transport: Transport | None = None, overrides: Mapping[str, Any] | None = None
    ) -> None:
        self._conf = conf
        self._transport = transport
        self._overrides = dict(overrides or {})
        self._lock = threading.Lock()
        self._protocol: Any = None
        self._memo = TokenCache()
        self._tokens = TokenCache()
        self._epoch = 0  # rises with every revocation; answers from before it are not remembered
        self._epoch_lock = threading.Lock()
        self._asking = threading.local()

    def warm(self) -> None:
        """Import and set up keystonemiddleware now."""
        self._ready()

    def forget(self, token: str) -> None:
        """The token is revoked: no request gets through with it from now on."""
        hashed = "tokens/" + hashlib.sha256(token.encode()).hexdigest()
        with self._epoch_lock:
            self._epoch += 1
            self._memo.delete(lambda key: token in key)
            self._tokens.delete(lambda key: key == hashed)

    def forget_all(self) -> None:
        """Users, projects or grants changed: every token is checked again."""
        with self._epoch_lock:
            self._epoch += 1
            self._memo.clear()
            self._tokens.clear()

    def get(self, key: str) -> Any:
        """keystonemiddleware's cache: what it kept for a token."""
        return self._tokens.get(key)

    def set(self, key: str, value: Any, time: float = MEMO_SECONDS) -> None:
        """keystonemiddleware's cache: keep an answer, unless something was revoked since this thread asked."""
        with self._epoch_lock:
            if self._asking.epoch == self._epoch:
                self._tokens.set(key, value, min(time, MEMO_SECONDS))

    def authenticate(self, environ: dict[str, Any]) -> Refusal | None:
        """Replace the identity headers of a request by those its token proves; none when it proves nothing.

        `HTTP_X_IDENTITY_STATUS` is `Confirmed` exactly when the token is good. A Refusal when the identity service
        cannot be asked.
        """
        for name in IDENTITY_HEADERS:
            environ.pop(name, None)
        token = environ.get("HTTP_X_AUTH_TOKEN") or environ.get("HTTP_X_STORAGE_TOKEN")
        if not token:
            return None
        key = (token, environ.get("HTTP_X_SERVICE_TOKEN"))
        known = self._memo.get(key)
        if known is not None:
            environ.update(known)
            return None
        outer = getattr(self._asking, "epoch", None)  # the identity service may authenticate on this very thread
        epoch = self._asking.epoch = self._epoch
        try:
            with preserved():
                anonymous(environ)  # what is logged while the token is checked belongs to this request
                refusal, confirmed = self._ask(environ)
        finally:
            self._asking.epoch = outer
        info = environ.pop("keystone.token_info", None)
        if confirmed:
            self._remember(key, environ, epoch, _seconds_left(info))
            return None
        for name in IDENTITY_HEADERS:
            environ.pop(name, None)
        return refusal

    def _ask(self, environ: dict[str, Any]) -> tuple[Refusal | None, bool]:
        environ[CACHE_KEY] = self
        environ.pop("kilonova.confirmed", None)
        started: list[Any] = []

        def start_response(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Any:
            started[:] = (status, headers)
            return lambda data: None

        try:
            body = list(self._ready()(environ, start_response))
        except Exception as error:
            return _cannot_ask(error), False
        environ.pop("keystone.token_auth", None)
        if environ.pop("kilonova.confirmed", False):
            return None, True
        if started[0].startswith("401"):
            return None, False
        return Refusal(started[0], started[1], body), False

    def _remember(self, key: Any, environ: dict[str, Any], epoch: int, seconds: float) -> None:
        if seconds <= 0:
            return
        known = {name: environ[name] for name in IDENTITY_HEADERS if name in environ}
        with self._epoch_lock:
            if epoch == self._epoch:
                self._memo.set(key, known, min(MEMO_SECONDS, seconds))

    def _ready(self) -> Any:
        if self._protocol is None:
            with self._lock:
                if self._protocol is None:
                    self._protocol = _protocol(self._conf, self._transport, self._overrides)
        return self._protocol


def _cannot_ask(error: Exception) -> Refusal:
    """What keystonemiddleware does not answer itself: wrong credentials, no endpoint in the catalogue, and the like."""
    from keystoneauth1.exceptions import ClientException

    if not isinstance(error, ClientException):
        raise error
    LOG.error("Tokens cannot be checked, see [keystone_authtoken]: %s", error)
    text = b"The identity service cannot be asked about tokens."
    headers = [("Content-Type", "text/plain; charset=UTF-8"), ("Content-Length", str(len(text)))]
    return Refusal("503 Service Unavailable", headers, [text])


def _seconds_left(info: Any) -> float:
    """How long an answer for a token may be remembered; 0 for tokens whose check depends on the request itself."""
    token = info.get("token") if isinstance(info, dict) else None
    if not isinstance(token, dict) or token.get("bind"):
        return 0.0
    if (token.get("application_credential") or {}).get("access_rules") is not None:
        return 0.0
    try:
        expires = datetime.fromisoformat(str(token["expires_at"]).replace("Z", "+00:00")).replace(tzinfo=None)
    except (KeyError, ValueError):
        return 0.0
    return (expires - clock.utcnow()).total_seconds()


def _confirm(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    environ["kilonova.confirmed"] = True
    start_response("204 No Content", [])
    return ()


def _protocol(conf: Any, transport: Transport | None, overrides: dict[str, Any]) -> Any:
    from keystonemiddleware import auth_token  # late: a quarter of a second

    class Protocol(auth_token.AuthProtocol):  # type: ignore[misc]
        """auth_token whose session goes through our transport."""

        def _create_session(self, **options: Any) -> Any:
            made = super()._create_session(**options)
            if transport is not None:
                from kilonova.clients.adapter import session

                made.session = session(transport)
            return made

    options = {
        "cache": CACHE_KEY,
        "include_service_catalog": False,
        "service_token_roles_required": True,
        "delay_auth_decision": False,
        **_without_credentials(conf, overrides),
    }
    return Protocol(_confirm, {"oslo_config_config": conf, **options})


def _without_credentials(conf: Any, overrides: dict[str, Any]) -> dict[str, Any]:
    """What is left after the options of the auth plugin went into `[keystone_authtoken]`, where the plugin looks."""
    from keystoneauth1 import loading

    if "auth_type" not in overrides:
        return overrides
    options = loading.get_auth_plugin_conf_options(loading.get_plugin_loader(overrides["auth_type"]))
    conf.register_opts(options, group=_GROUP)
    names = {option.dest for option in options}
    for name in names & set(overrides):
        conf.set_override(name, overrides[name], group=_GROUP)
    return {name: value for name, value in overrides.items() if name not in names}


_GROUP = "keystone_authtoken"
