"""The scheduler's API as one WSGI callable: for administrators, beside the Compute API."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

from kilonova.api.scheduler import decisions, questions
from kilonova.api.scheduler.dialect import SchedulerDialect
from kilonova.api.scheduler.versions import VERSIONS
from kilonova.core import json
from kilonova.http import openapi
from kilonova.http.app import App, Policy, Service
from kilonova.http.dialect import COMPUTE_FAULT
from kilonova.http.op import Op
from kilonova.http.versions import show

WsgiApp = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]

OPS: tuple[Op, ...] = (*decisions.OPS, *questions.OPS)


def make_app(world: Any, policy: Policy | None, *, auth_uri: str, behind: Callable[[WsgiApp], WsgiApp]) -> WsgiApp:
    """The application. `behind` puts it behind the middleware; its version document and OpenAPI need no token."""
    inner = behind(App(Service(
        "scheduler", OPS, world, SchedulerDialect(), VERSIONS, policy, auth_uri=auth_uri,
    )))  # fmt: skip
    documents = {"": version_document, "/": version_document, "/openapi.json": openapi_document}

    def dispatch(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        document = documents.get(environ.get("PATH_INFO", ""))
        if document is None or environ["REQUEST_METHOD"] not in ("GET", "HEAD"):
            return inner(environ, start_response)
        body = document()
        start_response("200 OK", [("Content-Type", "application/json"), ("Content-Length", str(len(body)))])
        return (body,)

    return dispatch


@cache
def version_document() -> bytes:
    """Which versions there are."""
    low, high = show(VERSIONS.minimum), show(VERSIONS.maximum)
    found = {"id": "v1.0", "status": "CURRENT", "min_version": low, "max_version": high}
    return json.dumps({"versions": [found]})


@cache
def openapi_document() -> bytes:
    """The API in OpenAPI 3.1."""
    return json.dumps(openapi.document("Kilonova Scheduler", ".", OPS, VERSIONS, VERSIONS.maximum, fault=COMPUTE_FAULT))
