"""A transport that answers from a script and remembers what it was asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kilonova.clients.rest import Body, FixedToken, NoAnswer, RestClient, TokenSource
from kilonova.core import json


class Scripted:
    """Answers in order: (status, document or bytes), or NoAnswer. `asked` has (method, path, headers, document)."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, str, Mapping[str, str], Any]] = []

    def send(self, method: str, url: str, headers: Mapping[str, str], body: Body) -> tuple[int, dict[str, str], bytes]:
        if body is not None and not isinstance(body, bytes):
            body = b"".join(body)
        document = json.loads(body) if body and "json" in headers.get("Content-Type", "") else body
        self.asked.append((method, url.removeprefix("http://svc"), headers, document))
        answer = self.answers.pop(0)
        if answer is NoAnswer:
            raise NoAnswer("connection refused")
        status, content = answer
        return status, {}, content if isinstance(content, bytes) else json.dumps(content)

    def open(
        self, method: str, url: str, headers: Mapping[str, str], body: Body
    ) -> tuple[int, dict[str, str], Iterator[bytes]]:
        status, answered, content = self.send(method, url, headers, body)
        return status, answered, iter([content])

    @property
    def lines(self) -> list[str]:
        """`METHOD path` of each request."""
        return [f"{method} {path}" for method, path, _, _ in self.asked]

    @property
    def bodies(self) -> list[Any]:
        """The document of each request."""
        return [document for _, _, _, document in self.asked]


def rest(transport: Scripted, tokens: TokenSource | None = None, **options: Any) -> RestClient:
    """A client of a service at http://svc."""
    return RestClient("thing", "http://svc", transport, tokens or FixedToken("tok"), **options)
