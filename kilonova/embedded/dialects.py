"""How each embedded service words a refusal: the error bodies of Keystone, Glance, Neutron and Cinder.

Knows nothing of what is refused, or why.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kilonova.core import json
from kilonova.core.errors import KilonovaError
from kilonova.http.dialect import COMPUTE_FAULTS, REASONS, Fault

Render = Callable[[int, str, "KilonovaError | None"], "dict[str, Any]"]


@dataclass(frozen=True, slots=True)
class EmbeddedDialect:
    """A service whose errors are JSON objects, made by `render(status, text, error)`."""

    render: Render
    media_types: tuple[str, ...] = ("application/json",)
    wrong_method_is_404: bool = False

    def fault(self, status: int, text: str, environ: dict[str, Any], error: KilonovaError | None) -> Fault:
        """The error with its body; a 401 says where tokens come from."""
        headers = [("Content-Type", "application/json")]
        if status == 401:
            host = environ.get("HTTP_HOST") or environ.get("SERVER_NAME", "localhost")
            headers.append(("WWW-Authenticate", f'Keystone uri="{environ["wsgi.url_scheme"]}://{host}/identity"'))
        return status, tuple(headers), json.dumps(self.render(status, text, error))

    def unmatched(self, environ: dict[str, Any], allow: tuple[str, ...]) -> Fault:
        """404 for a path that is not served here, 405 for a method that the path does not have."""
        if not allow:
            text = f"{environ.get('PATH_INFO') or '/'} is not a path that this embedded service serves."
            return self.fault(404, text, environ, None)
        text = f"The method {environ['REQUEST_METHOD']} is not served on this path."
        status, headers, body = self.fault(405, text, environ, None)
        return status, (*headers, ("Allow", ", ".join(allow))), body


def _title(status: int) -> str:
    return REASONS.get(status, "Error")


def _identity(status: int, text: str, error: KilonovaError | None) -> dict[str, Any]:
    return {"error": {"code": status, "message": text, "title": _title(status)}}


def _images(status: int, text: str, error: KilonovaError | None) -> dict[str, Any]:
    return {"code": f"{status} {_title(status)}", "title": _title(status), "message": text}


def _network(status: int, text: str, error: KilonovaError | None) -> dict[str, Any]:
    # The type is the error's class name: clients tell errors apart by it.
    kind = type(error).__name__ if error is not None else "HTTP" + _title(status).replace(" ", "")
    return {"NeutronError": {"type": kind, "message": text, "detail": ""}}


def _volumes(status: int, text: str, error: KilonovaError | None) -> dict[str, Any]:
    return {COMPUTE_FAULTS.get(status, "computeFault"): {"code": status, "message": text}}


IDENTITY = EmbeddedDialect(_identity)
IMAGES = EmbeddedDialect(_images, (
    "application/json", "application/openstack-images-v2.1-json-patch", "application/openstack-images-v2.0-json-patch",
))  # fmt: skip
NETWORK = EmbeddedDialect(_network)
VOLUMES = EmbeddedDialect(_volumes)
