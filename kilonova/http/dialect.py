"""What differs between the services' ways of speaking HTTP: bodies of errors, unmatched paths, wrong methods."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Any, Protocol

from kilonova.core import json
from kilonova.core.errors import KilonovaError

Fault = tuple[int, tuple[tuple[str, str], ...], bytes]
"""Status, headers (with the content type), body."""

REASONS = {
    200: "OK", 201: "Created", 202: "Accepted", 204: "No Content", 206: "Partial Content", 207: "Multi-Status",
    300: "Multiple Choices", 301: "Moved Permanently", 304: "Not Modified", 400: "Bad Request", 401: "Unauthorized",
    403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed", 406: "Not Acceptable", 409: "Conflict",
    410: "Gone", 411: "Length Required", 413: "Request Entity Too Large", 415: "Unsupported Media Type",
    422: "Unprocessable Entity", 429: "Too Many Requests", 500: "Internal Server Error", 501: "Not Implemented",
    503: "Service Unavailable",
}  # fmt: skip


class Dialect(Protocol):
    """How a service answers what is not a success. `environ` is the request's; `error` may be None."""

    @property
    def wrong_method_is_404(self) -> bool:
        """Whether a method that no row of the path has is an unmatched path."""
        ...

    @property
    def media_types(self) -> tuple[str, ...]:
        """What a body may come as."""
        ...

    def fault(self, status: int, text: str, environ: dict[str, Any], error: KilonovaError | None) -> Fault:
        """An error that an operation, or the check of a request for one, ends with."""
        ...

    def unmatched(self, environ: dict[str, Any], allow: tuple[str, ...]) -> Fault:
        """A path that no row has, or a method that no row of the path has (allow names those that there are)."""
        ...


def unauthorized(environ: dict[str, Any], uri: str) -> Fault:
    """The 401 of the authentication layer, the same for every service behind it (errors.md 1)."""
    text = "The request you have made requires authentication."
    body = json.dumps({"error": {"code": 401, "title": "Unauthorized", "message": text}})
    return 401, (("Content-Type", "application/json"), ("WWW-Authenticate", f'Keystone uri="{uri}"')), body


def plain(status: int, text: str, environ: dict[str, Any]) -> Fault:
    """An error outside any operation: text, HTML or JSON, as Accept asks (errors.md 1)."""
    title = REASONS[status]
    accept = str(environ.get("HTTP_ACCEPT", ""))
    if "application/json" in accept:
        body = json.dumps({"message": text, "code": f"{status} {title}", "title": title})
        return status, (("Content-Type", "application/json"),), body
    if "text/html" in accept or "*/*" in accept:
        page = f"<html>\n <head>\n  <title>{status} {title}</title>\n </head>\n <body>\n  <h1>{status} {title}</h1>\n"
        page += f"  {escape(text)}<br /><br />\n\n\n </body>\n</html>"
        return status, (("Content-Type", "text/html; charset=UTF-8"),), page.encode()
    return status, (("Content-Type", "text/plain; charset=UTF-8"),), f"{status} {title}\n\n{text}\n\n   ".encode()


COMPUTE_FAULTS = {
    400: "badRequest", 401: "unauthorized", 403: "forbidden", 404: "itemNotFound", 405: "badMethod",
    409: "conflictingRequest", 413: "overLimit", 415: "badMediaType", 429: "overLimit", 501: "notImplemented",
    503: "serviceUnavailable",
}  # fmt: skip


COMPUTE_FAULT: dict[str, Any] = {
    "type": "object",
    "minProperties": 1,
    "maxProperties": 1,
    "additionalProperties": {
        "type": "object",
        "required": ["code", "message"],
        "properties": {"code": {"type": "integer"}, "message": {"type": "string"}},
    },
}
"""The schema of what `ComputeDialect.fault` answers."""


@dataclass(frozen=True, slots=True)
class ComputeDialect:
    """The Compute API (errors.md 1). There is no 405: a wrong method is an unmatched path."""

    wrong_method_is_404: bool = True
    media_types: tuple[str, ...] = ("application/json", "application/vnd.openstack.compute+json", "text/plain")

    def fault(self, status: int, text: str, environ: dict[str, Any], error: KilonovaError | None) -> Fault:
        """`{"<fault name>": {"code", "message"}}`."""
        body = {COMPUTE_FAULTS.get(status, "computeFault"): {"code": status, "message": text}}
        return status, (("Content-Type", "application/json; charset=UTF-8"),), json.dumps(body)

    def unmatched(self, environ: dict[str, Any], allow: tuple[str, ...]) -> Fault:
        """Plain 404, no version headers."""
        return plain(404, "The resource could not be found.", environ)
