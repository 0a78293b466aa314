"""The services of one cloud, as somebody meets them who sends nonsense to all of them."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from kilonova.http.op import Op
from kilonova.http.versions import parse
from tests.http.compute.cloud import BASE, Client

UNKNOWN = "00000000-0000-4000-8000-000000000000"


@dataclass(frozen=True)
class Target:
    """A service: versions are those to try, `None` where it has none; message finds the words in its error body."""

    name: str
    prefix: str
    rows: str
    versions: tuple[str | None, ...]
    message: Callable[[Any], str]

    def ops(self) -> list[Op]:
        """Its rows, without those that only say that something is not served."""
        module = importlib.import_module(self.rows)
        refused = [what for what, _ in (*getattr(module, "NOT_SERVED", ()), *getattr(module, "NOT_SERVED_ACTIONS", ()))]
        return [
            op for op in module.OPS
            if "{_" not in op.path and op.action not in refused
            and not any(op.path == path or op.path.startswith(f"{path}/") for path in refused)
        ]  # fmt: skip

    def headers(self, version: str | None) -> dict[str, str]:
        """The header that asks for a version."""
        return {} if version is None else {"OpenStack-API-Version": f"{self.name} {version}"}


def _named(document: Any) -> str:
    ((_, fault),) = document.items()
    assert isinstance(fault["code"], int)
    return str(fault["message"])


def _images(document: Any) -> str:
    assert document["code"].endswith(document["title"])
    return str(document["message"])


def _placement(document: Any) -> str:
    (error,) = document["errors"]
    assert isinstance(error["status"], int)
    assert error["request_id"]
    return str(error["detail"])


TARGETS = (
    Target("compute", "/compute/v2.1", "kilonova.api.compute.rows", ("2.1", "2.104"), _named),
    Target("placement", "/placement", "kilonova.placement.app", ("1.0", "1.39"), _placement),
    Target("scheduler", "/scheduler", "kilonova.api.scheduler.app", ("1.0",), _named),
    Target("identity", "/identity", "kilonova.embedded.identity.app", (None,), lambda d: str(d["error"]["message"])),
    Target("image", "/image", "kilonova.embedded.images.app", (None,), _images),
    Target(
        "network", "/networking", "kilonova.embedded.network.app", (None,),
        lambda document: str(document["NeutronError"]["message"]),
    ),
    Target("volume", "/volume", "kilonova.embedded.volumes.app", ("3.54",), _named),
)  # fmt: skip
BY_NAME = {target.name: target for target in TARGETS}


@dataclass(frozen=True)
class Case:
    """A row at a version."""

    target: Target
    op: Op
    version: str | None

    def __str__(self) -> str:
        words = (self.target.name, self.version, self.op.method, self.op.path, self.op.action)
        return " ".join(word for word in words if word)

    @property
    def number(self) -> tuple[int, int] | None:
        return parse(self.version) if self.version else None

    def send(self, client: Client, body: bytes, **headers: str) -> tuple[int, Any]:
        """(status, document) of a request with this body, to resources that are not there."""
        path, _, rest = self.op.path.partition("{")
        while rest:
            path, _, rest = (path + UNKNOWN + rest.partition("}")[2]).partition("{")
        sent = {"X-Auth-Token": client.token, "Content-Type": "application/json"} | self.target.headers(self.version)
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        status, _, data = client.transport.send(self.op.method, BASE + self.target.prefix + path, sent, body)
        return status, json.loads(data) if data else None


def cases() -> Iterator[Case]:
    """Every row of every service that takes a body, oldest and newest version."""
    for target in TARGETS:
        for version in target.versions:
            for op in target.ops():
                known = version is None or parse(version) in op.range
                if op.body is not None and known and op.method in ("POST", "PUT", "PATCH"):
                    yield Case(target, op, version)
