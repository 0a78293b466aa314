"""Requests to an App without anything around it."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from typing import Any

from kilonova.core.context import Context
from kilonova.http.app import App, Policy, Service
from kilonova.http.dialect import ComputeDialect, Dialect
from kilonova.http.op import Op
from kilonova.http.versions import Versions

VERSIONS = Versions("compute", {"2.1": "", "2.2": "", "2.10": ""}, legacy_header="X-OpenStack-Nova-API-Version")


@dataclass(frozen=True)
class Answer:
    status: int
    headers: list[tuple[str, str]]
    data: bytes

    @property
    def body(self) -> Any:
        return json.loads(self.data)

    def header(self, name: str) -> list[str]:
        return [value for found, value in self.headers if found.lower() == name.lower()]


def app(*ops: Op, versions: Versions | None = VERSIONS, dialect: Dialect | None = None, **more: Any) -> App:
    """A service of these rows, with projects in paths."""
    return App(Service("compute", ops, None, dialect or ComputeDialect(), versions, project_in_path=True, **more))


def ask(
    to: App, method: str, path: str, body: bytes | None = None, *, context: bool = True, version: str | None = None,
    **headers: str,
) -> Answer:
    """path with its query. `Accept="…"` and the like are headers."""
    path, _, query = path.partition("?")
    ctx = Context(project_id="abc0", user_id="u", roles=["member"], overwrite=False) if context else None
    environ: dict[str, Any] = {
        "REQUEST_METHOD": method, "SCRIPT_NAME": "/v2.1", "PATH_INFO": path, "QUERY_STRING": query,
        "HTTP_HOST": "127.0.0.1", "wsgi.url_scheme": "http", "wsgi.input": io.BytesIO(body or b""),
        "CONTENT_LENGTH": str(len(body or b"")), "kilonova.context": ctx,
    }  # fmt: skip
    if version is not None:
        environ["HTTP_OPENSTACK_API_VERSION"] = f"compute {version}"
    for name, value in headers.items():
        environ["CONTENT_TYPE" if name == "Content_Type" else f"HTTP_{name.upper()}"] = value
    started: list[Any] = []
    data = b"".join(to(environ, lambda status, fields: started.extend((status, fields))))
    return Answer(int(started[0][:3]), started[1], data)


class Allow:
    """A policy that lets everybody do what it names."""

    def __init__(self, *rules: str) -> None:
        self.rules = rules

    def allowed(self, rule: str, ctx: Context, target: dict[str, Any]) -> bool:
        return rule in self.rules

    def authorize(self, rule: str, ctx: Context, target: dict[str, Any]) -> None:
        from kilonova.core.errors import Forbidden

        if rule not in self.rules:
            raise Forbidden(f"Policy doesn't allow {rule} to be performed.")


NOBODY: Policy = Allow()
