"""A client of the identity service in this process."""

from __future__ import annotations

import io
from dataclasses import dataclass, replace
from typing import Any

from kilonova.core import json

BASE = "http://cloud:8774"
PASSWORD, SERVICE_PASSWORD = "opensesame", "service-secret"


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: Any


@dataclass(frozen=True)
class Client:
    """Requests with one token, or none."""

    app: Any
    token: str | None = None

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        """An answer; `X_Subject_Token=…` is a header."""
        data = b"" if body is None else json.dumps(body)
        where, _, query = path.partition("?")
        environ: dict[str, Any] = {
            "REQUEST_METHOD": method, "PATH_INFO": where, "QUERY_STRING": query, "SCRIPT_NAME": "/identity",
            "wsgi.input": io.BytesIO(data), "CONTENT_LENGTH": str(len(data)), "CONTENT_TYPE": "application/json",
            "wsgi.url_scheme": "http", "HTTP_HOST": "cloud:8774", "SERVER_NAME": "cloud",
            **{f"HTTP_{name.upper()}": value for name, value in headers.items()},
        }  # fmt: skip
        if self.token:
            environ["HTTP_X_AUTH_TOKEN"] = self.token
        seen: list[Any] = []
        text = b"".join(self.app(environ, lambda status, fields: seen.extend((status, fields))))
        return Answer(int(seen[0].split()[0]), dict(seen[1]), json.loads(text) if text else None)

    def get(self, path: str) -> Any:
        """The document of a GET that succeeds."""
        answer = self.ask("GET", path)
        assert answer.status == 200, answer.body
        return answer.body

    def make(self, noun: str, **values: Any) -> dict[str, Any]:
        """Create a thing."""
        answer = self.ask("POST", f"/v3/{noun}s", {noun: values})
        assert answer.status == 201, answer.body
        made: dict[str, Any] = answer.body[noun]
        return made

    def with_token(self, token: str) -> Client:
        return replace(self, token=token)


def password_login(user: str, password: str = PASSWORD, scope: Any = None) -> dict[str, Any]:
    """The body of a login of a user of the default domain; `scope` a project's name or a scope object."""
    identity = {"methods": ["password"],
                "password": {"user": {"name": user, "domain": {"id": "default"}, "password": password}}}
    auth: dict[str, Any] = {"identity": identity}
    if isinstance(scope, str) and scope != "unscoped":
        scope = {"project": {"name": scope, "domain": {"id": "default"}}}
    if scope is not None:
        auth["scope"] = scope
    return {"auth": auth}


def login(client: Client, user: str, password: str = PASSWORD, scope: Any = None) -> Client:
    """The client as that user."""
    answer = client.ask("POST", "/v3/auth/tokens", password_login(user, password, scope))
    assert answer.status == 201, answer.body
    return client.with_token(answer.headers["X-Subject-Token"])


def id_of(client: Client, plural: str, name: str) -> str:
    """The id of a thing by its name."""
    found = client.get(f"/v3/{plural}?name={name}")[plural]
    assert len(found) == 1
    return str(found[0]["id"])
