"""JSON over HTTP to another OpenStack service: addresses, tokens, microversions, request ids, errors.

A client knows a `Transport` (a socket, or the WSGI application in this process) and a `TokenSource`; it never knows
which service program answers. It must not know databases, workflows or the requests library: calls are on hot paths.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, Self
from urllib.parse import quote, urlencode

from kilonova.core import context, json
from kilonova.core.errors import Conflict, Forbidden, Invalid, KilonovaError, NotFound, OverQuota, Unavailable

Doc = dict[str, Any]
Body = bytes | Iterable[bytes] | None
Errors = Mapping[Any, type[KilonovaError]]  # keys: a status, or (status, type in the error body)

CONCURRENT_UPDATE = "placement.concurrent_update"


class RemoteUnavailable(Unavailable):
    code, message = "remote_unavailable", "The {service} service does not answer: {reason}"


class RemoteInvalid(Invalid):
    code, message = "remote_invalid", "The {service} service refused the request: {reason}"


class RemoteForbidden(Forbidden):
    code, message = "remote_forbidden", "The {service} service does not allow this: {reason}"


class RemoteNotFound(NotFound):
    code, message = "remote_not_found", "The {service} service does not know it: {reason}"


class RemoteConflict(Conflict):
    code, message = "remote_conflict", "The {service} service reports a conflict: {reason}"


class QuotaExceeded(OverQuota):
    code, message = "remote_over_quota", "A quota of the {service} service is exceeded: {reason}"


class EndpointNotFound(Unavailable):
    code, message = "endpoint_not_found", "There is no endpoint of the {service} service in the catalog."


class NoAnswer(Exception):
    """A transport got no answer: the text says why. Above `RestClient` it is RemoteUnavailable."""


class Transport(Protocol):
    """Carries one request. Header names of the answer are in lower case.

    `NoAnswer` when none comes. RuntimeError when a database transaction is open on this thread.
    """

    def send(self, method: str, url: str, headers: Mapping[str, str], body: Body) -> tuple[int, dict[str, str], bytes]:
        """The whole answer: status, headers, body."""
        ...

    def open(
        self, method: str, url: str, headers: Mapping[str, str], body: Body
    ) -> tuple[int, dict[str, str], Iterator[bytes]]:
        """The answer with its body in pieces; the caller reads it to the end or closes it."""
        ...


class TokenSource(Protocol):
    """Who is asking: the headers that prove it."""

    def headers(self) -> Mapping[str, str]:
        """`X-Auth-Token` and what belongs to it."""
        ...

    def renew(self, stale: Mapping[str, str]) -> bool:
        """The remote refused `stale`: whether a new try makes sense."""
        ...


@dataclass(frozen=True, slots=True)
class FixedToken:
    """A token that cannot be renewed: a user's own, with this service's beside it where one is configured."""

    token: str
    service: TokenSource | None = None

    def headers(self) -> Mapping[str, str]:
        if self.service is None:
            return {"X-Auth-Token": self.token}
        return {"X-Auth-Token": self.token, "X-Service-Token": self.service.headers()["X-Auth-Token"]}

    def renew(self, stale: Mapping[str, str]) -> bool:
        if self.service is None:
            return False
        return self.service.renew({"X-Auth-Token": stale.get("X-Service-Token", "")})


@dataclass(frozen=True, slots=True)
class Response:
    """What came back: any status; header names in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """The decoded body; None when it is empty or not JSON."""
        if not self.body:
            return None
        try:
            return json.loads(self.body)
        except ValueError:
            return None


class RestClient:
    """One service at one endpoint. `endpoint` may be a function, asked at each call (a catalog that is cached).

    `microversion` is the service name in the `OpenStack-API-Version` header.
    """

    def __init__(
        self,
        service: str,
        endpoint: str | Callable[[], str],
        transport: Transport,
        tokens: TokenSource,
        *,
        microversion: str | None = None,
        send_service_token: bool = False,
    ) -> None:
        self.service = service
        self._endpoint = endpoint
        self._transport = transport
        self._tokens = tokens
        self._microversion = microversion or service
        self._service_token = send_service_token

    def as_user(self, ctx: context.Context | None) -> Self:
        """The same service with the user's own token; itself when the request has none (work from the bus)."""
        if ctx is None or not ctx.auth_token:
            return self
        own = self._tokens if self._service_token else None
        return type(self)(
            self.service,
            self._endpoint,
            self._transport,
            FixedToken(ctx.auth_token, own),
            microversion=self._microversion,
            send_service_token=self._service_token,
        )

    def url(self, path: str) -> str:
        """The address of a path that begins with a slash."""
        endpoint = self._endpoint if isinstance(self._endpoint, str) else self._endpoint()
        return endpoint.rstrip("/") + path

    def _headers(self, tokens: Mapping[str, str], version: str | None, extra: Mapping[str, str] | None) -> Doc:
        headers: Doc = {"Accept": "application/json", **tokens}
        if version is not None:
            headers["OpenStack-API-Version"] = f"{self._microversion} {version}"
        ctx = context.current()
        if ctx is not None:
            headers["X-OpenStack-Request-ID"] = ctx.global_request_id or ctx.request_id
        if extra:
            headers.update(extra)
        return headers

    def request(
        self,
        method: str,
        path: str,
        *,
        json: Any = None,
        data: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        version: str | None = None,
    ) -> Response:
        """Send and answer whatever comes, with one new try after a 401 if the token can be renewed.

        `json` is encoded; `data` goes as it is. Raises RemoteUnavailable when nothing answers.
        """
        body = data
        extra = headers
        if json is not None:
            body = _encode(json)
            extra = {"Content-Type": "application/json", **(headers or {})}
        url = self.url(path)
        tokens = self._tokens.headers()
        try:
            status, answered, content = self._transport.send(method, url, self._headers(tokens, version, extra), body)
            if status == 401 and self._tokens.renew(tokens):
                again = self._headers(self._tokens.headers(), version, extra)
                status, answered, content = self._transport.send(method, url, again, body)
        except NoAnswer as error:
            raise RemoteUnavailable(service=self.service, reason=str(error)) from error
        return Response(status, answered, content)

    def call(
        self,
        method: str,
        path: str,
        *,
        json: Any = None,
        errors: Errors | None = None,
        headers: Mapping[str, str] | None = None,
        version: str | None = None,
        **details: Any,
    ) -> Any:
        """The decoded body of a success; the domain error that `errors` names, or one of the remote errors.

        Keys of `errors` are a status, or a status with the type or code in the error body; `details` fill the message.
        """
        return self.expect(self.request(method, path, json=json, headers=headers, version=version), errors, **details)

    def expect(self, response: Response, errors: Errors | None = None, **details: Any) -> Any:
        """The decoded body of a success, None for an empty one; else the errors of `call`."""
        if response.status < 300:
            return response.json()
        raise failure(self.service, response, errors, **details)

    def stream(
        self, method: str, path: str, body: Body = None, *, headers: Mapping[str, str] | None = None
    ) -> tuple[int, dict[str, str], Iterator[bytes]]:
        """Send or receive a body in pieces; no second try, because a stream can be read once."""
        sent = self._headers(self._tokens.headers(), None, headers)
        try:
            return self._transport.open(method, self.url(path), sent, body)
        except NoAnswer as error:
            raise RemoteUnavailable(service=self.service, reason=str(error)) from error


_encode = json.dumps

_BY_STATUS: Errors = {
    400: RemoteInvalid,
    403: RemoteForbidden,
    404: RemoteNotFound,
    409: RemoteConflict,
    412: RemoteConflict,
    413: QuotaExceeded,
    422: RemoteInvalid,
    429: QuotaExceeded,
}


def failure(service: str, response: Response, errors: Errors | None = None, **details: Any) -> KilonovaError:
    """The error that an answer of 300 or more means: the caller's own table first, then by status, else unavailable."""
    kind, reason = explain(response)
    table = errors or {}
    found = table.get((response.status, kind)) or table.get(response.status) or _BY_STATUS.get(response.status)
    if found is None:
        return RemoteUnavailable(service=service, reason=f"HTTP {response.status} {reason}".strip())
    return found(**{"service": service, "reason": reason, **details})


def explain(response: Response) -> tuple[str, str]:
    """The type (or code) and the words of an error body in any of the formats the services have; empty if none."""
    body = response.json()
    if not isinstance(body, dict):
        return "", response.body[:200].decode("utf-8", "replace") if not response.body.lstrip().startswith(b"<") else ""
    inner = body.get("errors")
    first = inner[0] if isinstance(inner, list) and inner else next(iter(body.values()), None)
    if isinstance(first, dict):
        kind = first.get("type") or first.get("code") or ""
        return str(kind), str(first.get("detail") if "errors" in body else first.get("message") or "")
    return "", str(body.get("message") or first or "")


def segment(value: object) -> str:
    """An id as one segment of a path; NotFound for what could mean another path."""
    text = str(value)
    if not text or text.strip(".") == "":
        raise NotFound
    return quote(text, safe="")


def query(pairs: Mapping[str, Any]) -> str:
    """`?a=1&b=2`: lists repeat their key, None is left out, booleans are true and false; empty for nothing."""
    flat: list[tuple[str, str]] = []
    for key, value in pairs.items():
        for item in value if isinstance(value, (list, tuple, set, frozenset)) else (value,):
            if item is not None:
                flat.append((key, str(item).lower() if isinstance(item, bool) else str(item)))
    return "?" + urlencode(flat) if flat else ""
