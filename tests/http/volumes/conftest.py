"""The volume service in this process, with one image that can be looked up."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kilonova.core import json
from kilonova.core.context import Context
from kilonova.core.errors import NotFound
from kilonova.embedded.volumes.app import make_app
from kilonova.http.app import App
from kilonova.sql.engine import Database

IMAGE = {"id": "3a3a6b1e-8b47-4d0f-9a52-0b9a4b7d1a11", "name": "cirros", "status": "active", "size": 3 << 30,
         "min_disk": 2, "min_ram": 64, "disk_format": "qcow2", "container_format": "bare", "checksum": "c",
         "hw_disk_bus": "virtio", "visibility": "public", "tags": []}  # fmt: skip
SERVER, SECOND = "5d1dd49e-5b6c-4d7b-9ad4-5d1dd49e5b6c", "6d1dd49e-5b6c-4d7b-9ad4-5d1dd49e5b6d"


def _image(ctx: Context, key: str) -> Mapping[str, Any]:
    if key != IMAGE["id"]:
        raise NotFound
    return IMAGE


@dataclass(frozen=True)
class Client:
    """Requests as one account, at one microversion."""

    app: App
    project: str
    roles: tuple[str, ...]
    version: str = "3.54"
    prefix: str = "/v3"

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any, dict[str, str]]:
        """(status, document, headers) of a request; path begins after the prefix and may have a query."""
        data = b"" if body is None else json.dumps(body)
        where, _, query = path.partition("?")
        context = Context(project_id=self.project, user_id="u", roles=list(self.roles), overwrite=False)
        environ = {
            "REQUEST_METHOD": method, "PATH_INFO": self.prefix + where, "QUERY_STRING": query,
            "SCRIPT_NAME": "/volume", "wsgi.input": io.BytesIO(data), "CONTENT_LENGTH": str(len(data)),
            "CONTENT_TYPE": "application/json", "wsgi.url_scheme": "http", "HTTP_HOST": "cloud",
            "kilonova.context": context, "HTTP_OPENSTACK_API_VERSION": f"volume {self.version}",
        }  # fmt: skip
        seen: list[Any] = []
        answer = b"".join(self.app(environ, lambda status, headers: seen.extend((status, dict(headers)))))
        return int(seen[0].split()[0]), json.loads(answer) if answer else None, seen[1]

    def ok(self, method: str, path: str, body: Any = None) -> Any:
        """The document of a request that succeeds."""
        status, document, _ = self.ask(method, path, body)
        assert status < 300, document
        return document

    def make(self, **values: Any) -> dict[str, Any]:
        """A new volume, as its create answered."""
        made: dict[str, Any] = self.ok("POST", "/volumes", {"volume": {"size": 1} | values})["volume"]
        return made

    def show(self, key: str) -> dict[str, Any]:
        found: dict[str, Any] = self.ok("GET", f"/volumes/{key}")["volume"]
        return found

    def act(self, volume: str, action: str, **values: Any) -> int:
        """The status that an action on a volume answers."""
        return self.ask("POST", f"/volumes/{volume}/action", {action: values})[0]


@pytest.fixture
def app(tmp_path: Path) -> App:
    return make_app(Database(f"sqlite:///{tmp_path}/volumes.db"), images=_image)


@pytest.fixture
def demo(app: App) -> Client:
    return Client(app, "d" * 32, ("member", "reader"))


@pytest.fixture
def other(app: App) -> Client:
    return Client(app, "0" * 32, ("member", "reader"))


@pytest.fixture
def admin(app: App) -> Client:
    return Client(app, "a" * 32, ("admin", "member", "reader"))


@pytest.fixture
def service(app: App) -> Client:
    return Client(app, "5" * 32, ("service",))
