"""The Compute API as one WSGI callable: version documents, `/v2.1`, legacy `/v2`, `/openapi.json`, and the choice for
other paths."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

from kilonova.api.compute import versions
from kilonova.api.compute.rows import OPS
from kilonova.core import json
from kilonova.http import openapi
from kilonova.http.app import App, Policy, Service
from kilonova.http.dialect import COMPUTE_FAULT, ComputeDialect

WsgiApp = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


def make_app(world: Any, policy: Policy | None, *, auth_uri: str, behind: Callable[[WsgiApp], WsgiApp]) -> WsgiApp:
    """The application. `behind` puts a versioned application behind the middleware; `/` needs no token."""

    def service(relaxed: bool) -> WsgiApp:
        return behind(App(Service(
            "compute", OPS, world, ComputeDialect(), versions.VERSIONS, policy, project_in_path=True, relaxed=relaxed,
            auth_uri=auth_uri,
        )))  # fmt: skip

    current, legacy = service(False), service(True)

    def dispatch(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        path = environ.get("PATH_INFO", "")
        first, _, rest = path[1:].partition("/")
        app = current if first == "v2.1" else legacy if first == "v2" else None
        if app is None:
            return _outside(environ, path, start_response)
        environ["SCRIPT_NAME"] = f"{environ.get('SCRIPT_NAME', '')}/{first}"
        environ["PATH_INFO"] = f"/{rest}"
        return app(environ, start_response)

    return dispatch


def _outside(environ: dict[str, Any], path: str, start_response: Callable[..., Any]) -> Iterable[bytes]:
    host = f"{environ['wsgi.url_scheme']}://{environ.get('HTTP_HOST') or environ['SERVER_NAME']}"
    base = host + environ.get("SCRIPT_NAME", "")
    if path in ("", "/"):
        documents = [versions.brief("v2.0", base), versions.brief("v2.1", base)]
        status, body = "200 OK", json.dumps({"versions": documents})
    elif path == "/openapi.json":
        status, body = "200 OK", openapi_document()
    else:
        status, body = "300 Multiple Choices", json.dumps(versions.choices(path, base))
    start_response(status, [("Content-Type", "application/json"), ("Content-Length", str(len(body)))])
    return (body,)


@cache
def openapi_document() -> bytes:
    """The API at its newest version in OpenAPI 3.1; the same for everybody, so made once."""
    found = versions.VERSIONS
    return json.dumps(
        openapi.document("Kilonova Compute", "v2.1", OPS, found, found.maximum, fault=COMPUTE_FAULT)
    )
