"""What stands around every web application, outermost first: CORS, proxy headers, request id, access log, size limit,
authentication, request context.

Each layer is entered only when a request has the headers it is for. Faults are the application's own business (its
error format), except those of this file, which come before any application. It must not know routes or resources.
"""

from __future__ import annotations

import io
import logging
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import quote

from oslo_context import context as oslo

from kilonova.core import clock, ids, log
from kilonova.core.context import Context
from kilonova.core.metrics import NO_OPERATION, OFF, Meters
from kilonova.http import busy
from kilonova.http.auth import Authenticates, anonymous
from kilonova.http.dialect import plain
from kilonova.http.metrics import REQUESTS
from kilonova.http.op import OPERATION, SAID, Headers

ACCESS = logging.getLogger("kilonova.access")

WsgiApp = Callable[[dict[str, Any], Any], Iterable[bytes]]

_FORWARDED = (
    "HTTP_FORWARDED", "HTTP_X_FORWARDED_PROTO", "HTTP_X_FORWARDED_HOST", "HTTP_X_FORWARDED_FOR",
    "HTTP_X_FORWARDED_PREFIX",
)  # fmt: skip


class AdminRule(Protocol):
    """The part of a policy that says who is an administrator."""

    def is_admin(self, ctx: Context) -> bool: ...


@dataclass(frozen=True, slots=True)
class Settings:
    """max_body: largest body in bytes, None for a service that takes streams. conf: for the oslo.middleware layers.
    meters: where requests are counted."""

    max_body: int | None = 114688
    proxy_headers: bool = False
    cors: bool = False
    conf: Any = None
    meters: Meters = OFF


def settings(conf: Any, *, limit_body: bool = True, meters: Meters = OFF) -> Settings:
    """The settings that `[oslo_middleware]` and `[cors]` make."""
    return Settings(
        max_body=conf.oslo_middleware.max_request_body_size if limit_body else None,
        proxy_headers=conf.oslo_middleware.enable_proxy_headers_parsing,
        cors=bool(conf.cors.allowed_origin),
        conf=conf,
        meters=meters,
    )


def pipeline(
    app: WsgiApp,
    *,
    service: str,
    settings: Settings,
    auth: Authenticates | None = None,
    policy: AdminRule | None = None,
) -> WsgiApp:
    """The application with its middleware.

    It finds the caller in `environ["kilonova.context"]`, None when no valid token came (then it answers 401 where it
    needs one). `policy` fills the context's is_admin.
    """
    core = _Core(app, service, settings, auth, policy)
    chain: WsgiApp = core
    if settings.proxy_headers:
        chain = _when(_proxied, chain, _lazy("http_proxy_to_wsgi", "HTTPProxyToWSGI", chain, settings.conf))
    if settings.cors:
        chain = _when(_has_origin, chain, _lazy("cors", "CORS", chain, settings.conf))
    return chain


def _proxied(environ: dict[str, Any]) -> bool:
    return any(name in environ for name in _FORWARDED)


def _has_origin(environ: dict[str, Any]) -> bool:
    return "HTTP_ORIGIN" in environ


def _when(test: Callable[[dict[str, Any]], bool], plain_way: WsgiApp, layered: WsgiApp) -> WsgiApp:
    def choose(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        return (layered if test(environ) else plain_way)(environ, start_response)

    return choose


def _lazy(module: str, name: str, app: WsgiApp, conf: Any) -> WsgiApp:
    """A layer of oslo.middleware, imported and made when it is first needed."""
    made: list[WsgiApp] = []

    def call(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        if not made:
            made.append(_layer(module, name, app, conf))
        return made[0](environ, start_response)

    return call


def _layer(module: str, name: str, app: WsgiApp, conf: Any) -> WsgiApp:
    """It registers its options itself, so it gets a configuration object of its own with our values in it."""
    from importlib import import_module

    from oslo_config import cfg

    found = import_module(f"oslo_middleware.{module}")
    group = "cors" if module == "cors" else "oslo_middleware"
    private = cfg.ConfigOpts()
    private([], project="kilonova", default_config_files=[], default_config_dirs=[])
    private.register_opts(found.OPTS, group)
    for option in found.OPTS:
        private.set_override(option.dest, conf[group][option.dest], group)
    layer: WsgiApp = getattr(found, name)(app, private)
    return layer


_OWN_ID_HEADERS = {"compute": ("x-compute-request-id",)}


class _Core:
    """Request id, access log and metrics, size, authentication and context in one frame."""

    def __init__(
        self, app: WsgiApp, service: str, settings: Settings, auth: Authenticates | None, policy: AdminRule | None
    ) -> None:
        self._app = app
        self._service = service
        self._id_headers = (*_OWN_ID_HEADERS.get(service, ()), "x-openstack-request-id")
        self._max_body, self._meters = settings.max_body, settings.meters
        self._auth = auth
        self._policy = policy

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        before, service = oslo.get_current(), log.enter(self._service)
        started = clock.monotonic()
        request_id = environ["openstack.request_id"] = ids.new_request_id()
        inbound = environ.get("HTTP_X_OPENSTACK_REQUEST_ID")
        if inbound and ids.is_request_id(inbound):
            environ["openstack.global_request_id"] = inbound
        extra = tuple((name, request_id) for name in self._id_headers)
        said: list[Any] = ["500", ()]

        def start(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Any:
            said[:] = (status, headers)
            complete = [*headers, *extra]
            return start_response(status, complete, exc_info) if exc_info else start_response(status, complete)

        try:
            try:
                body = self._answer(environ, start)
            except Exception as error:
                body = _busy(environ, start, error)
            seconds = clock.monotonic() - started
            operation, kind = environ.get(OPERATION, NO_OPERATION), _CLASSES.get(said[0][0], "5xx")
            self._meters.record(REQUESTS, seconds, self._service, operation, kind)
            if ACCESS.isEnabledFor(logging.INFO):
                _access(environ, said, seconds)
            return body
        finally:
            _restore(before)
            log.leave(service)

    def _answer(self, environ: dict[str, Any], start: Any) -> Iterable[bytes]:
        fault = self._check_body(environ)
        if fault is not None:
            anonymous(environ)
            return _refuse(environ, start, *fault)
        ctx: Context | None = None
        if self._auth is not None:
            refusal = self._auth.authenticate(environ)
            if refusal is not None:
                anonymous(environ)
                start(refusal.status, refusal.headers)
                return refusal.body
            if environ.get("HTTP_X_IDENTITY_STATUS") == "Confirmed":
                if not environ.get("HTTP_X_USER_ID"):
                    return _refuse(environ, start, 401, "The token belongs to no user.")
                ctx = Context.from_environ(environ)
                if self._policy is not None:
                    ctx.is_admin = self._policy.is_admin(ctx)
        if ctx is None:
            anonymous(environ)
        environ["kilonova.context"] = ctx
        return self._app(environ, start)

    def _check_body(self, environ: dict[str, Any]) -> tuple[int, str] | None:
        length = environ.get("CONTENT_LENGTH")
        chunked = "HTTP_TRANSFER_ENCODING" in environ
        if not length and not chunked:
            return None
        if length and chunked:
            return 400, "A request has either Content-Length or Transfer-Encoding, never both."
        if length and not (length.isascii() and length.isdigit()):
            return 400, "Content-Length is not a number."
        if self._max_body is None:
            return None
        if length:
            return _too_large(self._max_body) if int(length) > self._max_body else None
        data = environ["wsgi.input"].read(self._max_body + 1)
        if len(data) > self._max_body:
            return _too_large(self._max_body)
        environ["wsgi.input"] = io.BytesIO(data)
        environ["CONTENT_LENGTH"] = str(len(data))
        del environ["HTTP_TRANSFER_ENCODING"]
        return None


def _too_large(limit: int) -> tuple[int, str]:
    return 413, f"Request is too large. Larger than max_request_body_size ({limit})."


def _busy(environ: dict[str, Any], start: Any, error: Exception) -> Iterable[bytes]:
    """The answer when the database is why the application, or what comes before it, could not give one."""
    found = busy.database_busy(error, f"{environ['REQUEST_METHOD']} {environ.get('PATH_INFO', '')!r}")
    if found is None:
        raise error
    return _refuse(environ, lambda *said: start(*said, sys.exc_info()), found.status, found.text, busy.RETRY_AFTER)


def _refuse(environ: dict[str, Any], start: Any, status: int, text: str, more: Headers = ()) -> Iterable[bytes]:
    number, headers, body = plain(status, text, environ)
    title = _TITLES.get(number, "")
    start(f"{number} {title}", [*headers, *more, ("Content-Length", str(len(body)))])
    return () if environ["REQUEST_METHOD"] == "HEAD" else (body,)


_TITLES = {400: "Bad Request", 401: "Unauthorized", 413: "Request Entity Too Large", 503: "Service Unavailable"}
_CLASSES = {digit: f"{digit}xx" for digit in "12345"}


def _restore(before: Any) -> None:
    """Give the thread its context back: a worker serves others next, a call in process goes on with its own."""
    if before is not None:
        before.update_store()
    elif oslo.get_current() is not None:
        del oslo._request_store.context


def _access(environ: dict[str, Any], said: list[Any], seconds: float) -> None:
    """One line; the same as fields for those whose log lines have fields (`use_json`)."""
    status, headers = said
    length = version = "-"
    for name, value in headers:
        if name == "Content-Length":
            length = value
        elif name == "OpenStack-API-Version":
            version = value.rpartition(" ")[2]
    address, method, uri = environ.get("REMOTE_ADDR", "-"), environ["REQUEST_METHOD"], _raw_uri(environ)
    more = environ.get(SAID, {})
    fields = {
        "address": address, "method": method, "uri": uri, "status": status[:3], "len": length, "microversion": version,
        "time": seconds, **more,
    }  # fmt: skip
    ACCESS.info(
        '%s "%s %s" status: %s len: %s microversion: %s time: %.6f%s',
        address, method, uri, status[:3], length, version, seconds,
        "".join(f" {name}: {value}" for name, value in more.items()), extra={"extra": fields},
    )  # fmt: skip


def _raw_uri(environ: dict[str, Any]) -> str:
    """The address as it was sent; never decoded, because a decoded line feed would forge a log line."""
    uri = environ.get("REQUEST_URI") or environ.get("RAW_URI")
    if uri:
        return str(uri)
    query = environ.get("QUERY_STRING")
    path = quote(environ.get("SCRIPT_NAME", "") + environ.get("PATH_INFO", ""), encoding="latin-1")
    return f"{path}?{query}" if query else path
