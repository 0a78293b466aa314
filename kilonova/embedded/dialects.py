"""How each embedded service words a refusal: the error bodies of Keystone, Glance, Neutron and Cinder.

Knows nothing of what is refused, or why.
"""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from kilonova.core import json
from kilonova.core.errors import KilonovaError

Fault = Callable[[int, str, KilonovaError | None, Any], tuple[str, bytes]]

_JSON = "application/json"

# Cinder names the body after the status, as Nova does.
_VOLUME_NAMES = {
    400: "badRequest", 401: "unauthorized", 403: "forbidden", 404: "itemNotFound", 405: "badMethod",
    406: "notAcceptable", 409: "conflictingRequest", 413: "overLimit", 415: "badMediaType", 501: "notImplemented",
    503: "serviceUnavailable",
}  # fmt: skip


def title(status: int) -> str:
    """The reason phrase of a status."""
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Error"


def identity_fault(status: int, text: str, error: KilonovaError | None, req: Any) -> tuple[str, bytes]:
    """`{"error": {"code", "message", "title"}}`."""
    return _JSON, json.dumps({"error": {"code": status, "message": text, "title": title(status)}})


def image_fault(status: int, text: str, error: KilonovaError | None, req: Any) -> tuple[str, bytes]:
    """`{"code": "404 Not Found", "title", "message"}`."""
    name = title(status)
    return _JSON, json.dumps({"code": f"{status} {name}", "title": name, "message": text})


def network_fault(status: int, text: str, error: KilonovaError | None, req: Any) -> tuple[str, bytes]:
    """`{"NeutronError": {"type", "message", "detail"}}`; the type is the error's class, by which clients tell them."""
    kind = type(error).__name__ if error is not None else "HTTP" + title(status).replace(" ", "").replace("-", "")
    return _JSON, json.dumps({"NeutronError": {"type": kind, "message": text, "detail": ""}})


def volume_fault(status: int, text: str, error: KilonovaError | None, req: Any) -> tuple[str, bytes]:
    """`{"itemNotFound": {"code", "message"}}`, the name by status."""
    return _JSON, json.dumps({_VOLUME_NAMES.get(status, "computeFault"): {"code": status, "message": text}})
