"""A client of the image service in this process."""

from __future__ import annotations

import io
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from kilonova.core import json
from kilonova.core.context import Context

V21 = "application/openstack-images-v2.1-json-patch"
V20 = "application/openstack-images-v2.0-json-patch"
BYTES = "application/octet-stream"


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    data: bytes
    body: Any = field(default=None)


class Pieces(io.RawIOBase):
    """A body that comes in pieces, of unknown length; it may break off."""

    def __init__(self, pieces: Iterable[bytes], breaks: bool = False) -> None:
        self.pieces, self.breaks, self.largest = iter(pieces), breaks, 0

    def read(self, size: int = -1, /) -> bytes:
        self.largest = max(self.largest, size)
        piece = next(self.pieces, b"")
        if not piece and self.breaks:
            raise ConnectionResetError("gone")
        return piece


@dataclass(frozen=True)
class Client:
    """Requests as one project; without one, as nobody."""

    app: Any
    project: str | None
    roles: tuple[str, ...] = ("member", "reader")

    def ask(
        self, method: str, path: str, body: Any = None, *, kind: str = "application/json", length: int | None = None
    ) -> Answer:
        """An answer. The body is a document, bytes, or a file of unknown length."""
        data = b"" if body is None else body if isinstance(body, bytes | Pieces) else json.dumps(body)
        where, _, query = path.partition("?")
        environ: dict[str, Any] = {
            "REQUEST_METHOD": method, "PATH_INFO": where, "QUERY_STRING": query, "SCRIPT_NAME": "/image",
            "wsgi.input": data if isinstance(data, Pieces) else io.BytesIO(data), "CONTENT_TYPE": kind,
            "wsgi.url_scheme": "http", "HTTP_HOST": "cloud:8774", "SERVER_NAME": "cloud",
        }  # fmt: skip
        if length is not None or not isinstance(data, Pieces):
            environ["CONTENT_LENGTH"] = str(len(data) if length is None else length)
        if self.project:
            environ["kilonova.context"] = Context(
                project_id=self.project, user_id="u", roles=list(self.roles), overwrite=False)
        seen: list[Any] = []
        text = b"".join(self.app(environ, lambda status, fields: seen.extend((status, fields))))
        headers = dict(seen[1])
        document = json.loads(text) if text and "json" in headers["Content-Type"] else None
        return Answer(int(seen[0].split()[0]), headers, text, document)

    def get(self, path: str) -> Any:
        """The document of a GET that succeeds."""
        answer = self.ask("GET", path)
        assert answer.status == 200, answer.body
        return answer.body

    def create(self, **values: Any) -> dict[str, Any]:
        """A queued image, ready to be filled."""
        body = {"disk_format": "raw", "container_format": "bare", **values}
        answer = self.ask("POST", "/v2/images", body)
        assert answer.status == 201, answer.body
        made: dict[str, Any] = answer.body
        return made

    def upload(self, image: str, data: Any, *, kind: str = BYTES, length: int | None = None) -> Answer:
        return self.ask("PUT", f"/v2/images/{image}/file", data, kind=kind, length=length)

    def patch(self, image: str, *operations: dict[str, Any], kind: str = V21) -> Answer:
        return self.ask("PATCH", f"/v2/images/{image}", list(operations), kind=kind)

    def names(self, query: str = "") -> list[str]:
        """The names that a list with this query has, in its order."""
        return [row["name"] for row in self.get("/v2/images" + query)["images"]]
