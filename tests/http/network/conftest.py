"""The network service in this process, with its bootstrap done and a notifier that remembers."""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from kilonova.core import json
from kilonova.core.context import Context
from kilonova.embedded.network import topology
from kilonova.embedded.network.app import NetworkApp, make_app
from kilonova.sql.engine import Database


@dataclass
class Remembered:
    """A notifier that keeps what it was sent; it fails as often as `failures` says first."""

    batches: list[list[dict[str, str]]] = field(default_factory=list)
    failures: int = 0

    def send(self, events: list[dict[str, str]]) -> None:
        if self.failures:
            self.failures -= 1
            raise ConnectionError("nobody there")
        self.batches.append(list(events))

    @property
    def names(self) -> list[str]:
        return [event["name"] for batch in self.batches for event in batch]


@dataclass(frozen=True)
class Client:
    """Requests as one account."""

    app: NetworkApp
    project: str | None
    roles: tuple[str, ...]

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """(status, document) of a request; path begins after /v2.0 and may have a query."""
        data = b"" if body is None else json.dumps(body)
        where, _, query = path.partition("?")
        context = Context(project_id=self.project, user_id="u", roles=list(self.roles), overwrite=False)
        environ = {
            "REQUEST_METHOD": method, "PATH_INFO": "/v2.0" + where, "QUERY_STRING": query, "SCRIPT_NAME": "/networking",
            "wsgi.input": io.BytesIO(data), "CONTENT_LENGTH": str(len(data)), "CONTENT_TYPE": "application/json",
            "wsgi.url_scheme": "http", "HTTP_HOST": "cloud", "kilonova.context": context,
        }  # fmt: skip
        seen: list[str] = []
        answer = b"".join(self.app(environ, lambda status, headers: seen.append(status)))
        return int(seen[0].split()[0]), json.loads(answer) if answer else None

    def make(self, noun: str, **values: Any) -> dict[str, Any]:
        """Create a resource; `__` in a name stands for a colon."""
        body = {noun: {name.replace("__", ":"): value for name, value in values.items()}}
        status, document = self.ask("POST", f"/{noun.replace('_', '-')}s", body)
        assert status == 201, document
        made: dict[str, Any] = document[noun]
        return made

    def get(self, path: str) -> Any:
        """The document of a GET that succeeds."""
        status, document = self.ask("GET", path)
        assert status == 200, document
        return document

    def put(self, noun: str, key: str, **values: Any) -> tuple[int, Any]:
        body = {noun: {name.replace("__", ":"): value for name, value in values.items()}}
        return self.ask("PUT", f"/{noun.replace('_', '-')}s/{key}", body)


@pytest.fixture
def database(tmp_path: Path) -> Database:
    return Database(f"sqlite:///{tmp_path}/network.db")


@pytest.fixture
def notifier() -> Remembered:
    return Remembered()


@pytest.fixture
def app(database: Database, notifier: Remembered) -> NetworkApp:
    topology.bootstrap(database, admin_project="padmin", demo_project="pdemo")
    return make_app(database, notifier=notifier)


@pytest.fixture
def demo(app: NetworkApp) -> Client:
    return Client(app, "pdemo", ("member", "reader"))


@pytest.fixture
def other(app: NetworkApp) -> Client:
    return Client(app, "pother", ("member", "reader"))


@pytest.fixture
def admin(app: NetworkApp) -> Client:
    return Client(app, "padmin", ("admin", "member", "reader"))


@pytest.fixture
def service(app: NetworkApp) -> Client:
    return Client(app, "pservice", ("service",))
