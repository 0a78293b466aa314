"""A Placement service on a database of its own, called as the transport calls it."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from kilonova.core import ids, json
from kilonova.core.context import Context
from kilonova.placement.app import make_app
from kilonova.placement.store.prepare import prepare
from kilonova.sql.engine import Database

ADMIN = {"roles": ["admin"], "project_id": "admin-project", "user_id": "admin-user"}


@dataclass
class Reply:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> dict[str, Any]:
        found: dict[str, Any] = self.json["errors"][0]
        return found


@dataclass
class Client:
    app: Any
    version: str | None = "1.39"
    who: dict[str, Any] | None = field(default_factory=lambda: dict(ADMIN))

    def at(self, version: str | None) -> Client:
        return Client(self.app, version, self.who)

    def by(self, **who: Any) -> Client:
        return Client(self.app, self.version, who)

    def nobody(self) -> Client:
        return Client(self.app, self.version, None)

    def __call__(self, method: str, path: str, body: Any = None, **headers: str) -> Reply:
        path, _, query = path.partition("?")
        data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body)
        environ: dict[str, Any] = {
            "REQUEST_METHOD": method, "SCRIPT_NAME": "/placement", "PATH_INFO": path, "QUERY_STRING": query,
            "SERVER_NAME": "localhost", "SERVER_PORT": "80", "wsgi.url_scheme": "http",
            "wsgi.input": io.BytesIO(data), "CONTENT_LENGTH": str(len(data)), "HTTP_ACCEPT": "application/json",
        }  # fmt: skip
        if data:
            environ["CONTENT_TYPE"] = "application/json"
        if self.version:
            environ["HTTP_OPENSTACK_API_VERSION"] = f"placement {self.version}"
        if self.who is not None:
            environ["kilonova.context"] = Context(request_id=ids.new_request_id(), overwrite=False, **self.who)
        environ |= {key if key == "CONTENT_TYPE" else f"HTTP_{key}": value for key, value in headers.items()}
        started: list[Any] = []
        answer = self.app({k: v for k, v in environ.items() if v is not None}, lambda *args: started.extend(args))
        return Reply(int(started[0][:3]), {k.lower(): v for k, v in started[1]}, b"".join(answer))

    # -- what many tests need ---------------------------------------------------------------------------------

    def provider(self, name: str, parent: str | None = None, **inventories: Any) -> str:
        """A provider with inventories given as totals or as records; its UUID."""
        body: dict[str, Any] = {"name": name}
        if parent:
            body["parent_provider_uuid"] = parent
        made = self("POST", "/resource_providers", body)
        assert made.status == 200, made.body
        uuid: str = made.json["uuid"]
        if inventories:
            records = {key: {"total": one} if isinstance(one, int) else one for key, one in inventories.items()}
            put = self("PUT", f"/resource_providers/{uuid}/inventories",
                       {"inventories": records, "resource_provider_generation": 0})  # fmt: skip
            assert put.status == 200, put.body
        return uuid

    def generation(self, uuid: str) -> int:
        found: int = self("GET", f"/resource_providers/{uuid}").json["generation"]
        return found

    def traits(self, uuid: str, *names: str) -> None:
        for name in names:
            if name.startswith("CUSTOM_"):
                assert self("PUT", f"/traits/{name}").status in (201, 204)
        put = self("PUT", f"/resource_providers/{uuid}/traits",
                   {"traits": list(names), "resource_provider_generation": self.generation(uuid)})  # fmt: skip
        assert put.status == 200, put.body

    def aggregates(self, uuid: str, *wanted: str) -> None:
        put = self("PUT", f"/resource_providers/{uuid}/aggregates",
                   {"aggregates": list(wanted), "resource_provider_generation": self.generation(uuid)})  # fmt: skip
        assert put.status == 200, put.body

    def claim(self, consumer: str, generation: int | None = None, **amounts: dict[str, int]) -> Reply:
        """Keys of `amounts` are UUIDs with hyphens."""
        return self("PUT", f"/allocations/{consumer}", allocation(amounts, generation))


def allocation(amounts: dict[str, dict[str, int]], generation: int | None = None) -> dict[str, Any]:
    """A body for PUT /allocations at 1.38."""
    return {
        "allocations": {uuid: {"resources": resources} for uuid, resources in amounts.items()},
        "project_id": "p", "user_id": "u", "consumer_generation": generation, "consumer_type": "INSTANCE",
    }  # fmt: skip


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    database = Database(f"sqlite:///{tmp_path}/placement.db")
    prepare(database)
    yield Client(make_app(database))
    database.dispose()
