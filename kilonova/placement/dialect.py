"""How Placement words a refusal: `{"errors": [...]}` as JSON unless the client prefers a page or plain text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

from kilonova.core import json
from kilonova.core.errors import KilonovaError
from kilonova.http import versions
from kilonova.http.app import MalformedJson, WrongMediaType
from kilonova.http.dialect import REASONS, Fault
from kilonova.http.fields import Arr, Field, Int, Obj, Str
from kilonova.http.validate import BodyInvalid, QueryInvalid
from kilonova.placement.errors import UNDEFINED
from kilonova.placement.versions import VERSIONS

CODES_SINCE = (1, 23)

FAULT = Obj(
    Field(
        "errors",
        Arr(
            Obj(
                Field("status", Int(400, 599, strict=True), required=True),
                Field("title", Str(1), required=True),
                Field("detail", Str(1), required=True),
                Field("request_id", Str(1)),
                Field("code", Str(pattern="^placement[.]"), required=True, since="1.23"),
                Field("min_version", Str()),
                Field("max_version", Str()),
            ),
            1, 1,
        ),
        required=True,
    )
)  # fmt: skip
"""The JSON that `PlacementDialect.fault` answers. The versions stand in a refusal of the version asked for."""

_LINE_END = re.compile(r"\s*\n\s*")
_NEGOTIATOR = versions.Negotiator(VERSIONS)


@dataclass(frozen=True, slots=True)
class PlacementDialect:
    """See contract errors.md 14."""

    wrong_method_is_404: bool = False
    media_types: tuple[str, ...] = ("application/json",)

    def fault(self, status: int, text: str, environ: dict[str, Any], error: KilonovaError | None) -> Fault:
        """The error in the form that Accept prefers."""
        kind = preferred(str(environ.get("HTTP_ACCEPT", "")))
        text = _LINE_END.sub(" ", _worded(text, environ, error))  # clients show people the last line only
        title = REASONS.get(status, "Error")
        if kind == "application/json":
            document = {"errors": [_entry(status, title, text, environ, error)]}
            return status, (("Content-Type", "application/json"),), json.dumps(document)
        if kind == "text/html":
            page = f"<html>\n <head>\n  <title>{status} {title}</title>\n </head>\n <body>\n"
            page += f"  <h1>{status} {title}</h1>\n  {escape(text)}<br /><br />\n\n\n </body>\n</html>"
            return status, (("Content-Type", "text/html; charset=UTF-8"),), page.encode()
        body = f"{status} {title}\n\n{text}\n\n   ".encode()
        return status, (("Content-Type", "text/plain; charset=UTF-8"),), body

    def unmatched(self, environ: dict[str, Any], allow: tuple[str, ...]) -> Fault:
        """404, or 405 with the methods that the path has; but a wrong version is wrong everywhere."""
        negotiated = _NEGOTIATOR.negotiate(environ)
        more: tuple[tuple[str, str], ...] = ()
        if negotiated.error is not None:
            status, text = negotiated.error.status, negotiated.error.text
        elif allow:
            status, text = 405, f"The method {environ['REQUEST_METHOD']} is not allowed for this resource."
            more = (("Allow", ", ".join(allow)),)
        else:
            status, text = 404, "The resource could not be found."
        status, headers, body = self.fault(status, text, environ, negotiated.error)
        return status, (*headers, *more, *negotiated.headers), body


def _entry(
    status: int, title: str, text: str, environ: Mapping[str, Any], error: KilonovaError | None
) -> dict[str, Any]:
    entry: dict[str, Any] = {"status": status, "title": title, "detail": text}
    if _has_codes(environ):
        code = "" if error is None else error.code
        entry["code"] = code if code.startswith("placement.") else UNDEFINED
    ctx = environ.get("kilonova.context")
    if ctx is not None and ctx.request_id:
        entry["request_id"] = ctx.request_id
    if isinstance(error, versions.VersionUnsupported):
        entry["max_version"] = versions.show(VERSIONS.maximum)
        entry["min_version"] = versions.show(VERSIONS.minimum)
    return entry


_STARTS: tuple[tuple[type[KilonovaError], str], ...] = (
    (BodyInvalid, "JSON does not validate: "),
    (QueryInvalid, "Invalid query string parameters: "),
    (MalformedJson, "Malformed JSON: "),
)


def _worded(text: str, environ: Mapping[str, Any], error: KilonovaError | None) -> str:
    """The kit's refusals in the words that Placement's clients know."""
    if isinstance(error, BodyInvalid) and environ.get("CONTENT_LENGTH") in (None, "", "0"):
        return "Malformed JSON: there is no body"
    if isinstance(error, WrongMediaType):
        return f"The media type {error.details['given']} is not supported, use application/json"
    if isinstance(error, versions.VersionUnsupported):
        return f"Unacceptable version header: {error.details['requested']}"
    if isinstance(error, versions.VersionMalformed):
        return f"invalid version string: {error.details['text']}"
    for kind, start in _STARTS:
        if isinstance(error, kind):
            return start + str(error.details.get("report", text))
    return text


def _has_codes(environ: Mapping[str, Any]) -> bool:
    version = _NEGOTIATOR.negotiate(environ).version
    return version is not None and version >= CODES_SINCE


def preferred(accept: str) -> str:
    """Which of JSON, a page and plain text an Accept header prefers; JSON when it has no preference."""
    if not accept.strip():
        return "application/json"
    best, best_quality = "text/plain", 0.0
    for kind in ("application/json", "text/html"):
        quality = _quality(accept, kind)
        if quality > best_quality:
            best, best_quality = kind, quality
    return best


def accepts_json(accept: str) -> bool:
    """Whether a JSON answer is acceptable."""
    return not accept.strip() or _quality(accept, "application/json") > 0


def _quality(accept: str, kind: str) -> float:
    """The quality that an Accept header gives a media type: that of its most specific entry."""
    found: tuple[int, float] = (-1, 0.0)
    for part in accept.split(","):
        name, *parameters = (piece.strip() for piece in part.split(";"))
        rank = {kind: 2, kind.partition("/")[0] + "/*": 1, "*/*": 0}.get(name.lower(), -1)
        if rank > found[0]:
            found = rank, _q(parameters)
    return found[1] if found[0] >= 0 else 0.0


def _q(parameters: list[str]) -> float:
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "q":
            try:
                return float(value)
            except ValueError:
                return 0.0
    return 1.0
