"""A client of a whole cloud in this process: requests to the Compute API and its neighbours as one account."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from kilonova.core import clock, json
from kilonova.http.transport import WsgiTransport

BASE = "http://127.0.0.1:8774"
PASSWORD = "opensesame"
COMPUTE = "/compute/v2.1"


@dataclass(frozen=True)
class Answer:
    """body: the document, the text where it is none, or None where there is nothing."""

    status: int
    body: Any
    headers: dict[str, str]


@dataclass(frozen=True)
class Client:
    """One account. Paths begin after `/compute/v2.1`, or with `service=` after that service's prefix."""

    transport: WsgiTransport
    token: str
    project: str
    user: str
    version: str = "2.1"

    def at(self, version: str) -> Client:
        """The same account at another microversion; `latest` is one."""
        return replace(self, version=version)

    def ask(self, method: str, path: str, body: Any = None, *, service: str = COMPUTE, **headers: str) -> Answer:
        """An answer, whatever it is. `X_Name=…` is a header."""
        sent = {"X-Auth-Token": self.token} if self.token else {}
        sent |= {"OpenStack-API-Version": f"compute {self.version}"} if service == COMPUTE else {}
        sent |= {} if body is None else {"Content-Type": "application/json"}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        data = None if body is None else json.dumps(body)
        status, answered, text = self.transport.send(method, BASE + service + path, sent, data)
        is_json = "json" in answered.get("content-type", "")
        return Answer(status, json.loads(text) if text and is_json else text.decode() or None, answered)

    def ok(self, method: str, path: str, body: Any = None, *, status: int | None = None, **more: Any) -> Any:
        """The document of a request that succeeds, with just this status where one is given."""
        answer = self.ask(method, path, body, **more)
        assert answer.status == status if status else answer.status < 300, (method, path, answer.status, answer.body)
        return answer.body

    def get(self, path: str, **more: Any) -> Any:
        """The document of a GET that succeeds."""
        return self.ok("GET", path, **more)

    def status(self, method: str, path: str, body: Any = None, **more: Any) -> int:
        """The status of an answer."""
        return self.ask(method, path, body, **more).status

    def refused(self, status: int, method: str, path: str, body: Any = None, **more: Any) -> str:
        """The message of an answer that is this error, in the Compute API's format."""
        answer = self.ask(method, path, body, **more)
        assert answer.status == status, (method, path, answer.status, answer.body)
        (fault,) = answer.body.values()
        assert fault["code"] == status
        return str(fault["message"])


def login(transport: WsgiTransport, user: str, project: str, password: str = PASSWORD) -> Client:
    """A client with a token of its own."""
    domain = {"id": "default"}
    body = {"auth": {
        "identity": {"methods": ["password"], "password": {
            "user": {"name": user, "domain": domain, "password": password}}},
        "scope": {"project": {"name": project, "domain": domain}},
    }}  # fmt: skip
    nobody = Client(transport, "", "", "")
    answer = nobody.ask("POST", "/v3/auth/tokens", body, service="/identity")
    assert answer.status == 201, answer.body
    token = answer.body["token"]
    return Client(transport, answer.headers["x-subject-token"], token["project"]["id"], token["user"]["id"])


def until(what: Callable[[], Any], seconds: float = 10.0) -> Any:
    """The first true value, looked for often; AssertionError when there is none in time."""
    end = clock.monotonic() + seconds
    while not (found := what()):
        assert clock.monotonic() < end, "it did not come to be in time"
        clock.sleep(0.01)
    return found


def boot(client: Client, **values: Any) -> dict[str, Any]:
    """A new server that is ACTIVE (or ERROR), without a network, of the smallest flavor and the first image."""
    image = client.get("/v2/images?status=active", service="/image")["images"][0]["id"]
    server = {"name": "s", "flavorRef": "42", "imageRef": image, "networks": "none"} | values
    newer = client.at("2.37") if client.version == "2.1" else client
    made = newer.ok("POST", "/servers", {"server": server}, status=202)["server"]["id"]
    found: dict[str, Any] = until(lambda: _stable(newer, made))
    return found


def _stable(client: Client, server: str) -> dict[str, Any] | None:
    found: dict[str, Any] = client.get(f"/servers/{server}")["server"]
    return found if found["status"] in ("ACTIVE", "ERROR") else None


def remove(client: Client, server: str) -> None:
    """Delete a server and see it gone."""
    client.ok("DELETE", f"/servers/{server}", status=204)
    until(lambda: client.status("GET", f"/servers/{server}") == 404)
