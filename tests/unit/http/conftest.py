"""A compute-like service behind the pipeline, in one process with an identity service."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from kilonova.conf.load import load
from kilonova.core import json
from kilonova.http.auth import Auth
from kilonova.http.transport import WsgiTransport
from tests.unit.http.keystone import CREDENTIALS, Keystone


@pytest.fixture
def keystone() -> Keystone:
    return Keystone()


@pytest.fixture
def auth(keystone: Keystone) -> Auth:
    return Auth(load(warn=False), WsgiTransport(keystone), CREDENTIALS)


class Echo:
    """An application that says who it was told is asking and what it could read."""

    def __init__(self) -> None:
        self.environ: dict[str, Any] = {}

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        self.environ = environ
        ctx = environ.get("kilonova.context")
        length = int(environ.get("CONTENT_LENGTH") or 0)
        document = {"caller": ctx and ctx.to_message(), "body": environ["wsgi.input"].read(length).decode()}
        body = json.dumps(document)
        start_response("200 OK", [("Content-Type", "application/json"), ("Content-Length", str(len(body)))])
        return [body]


@pytest.fixture
def echo() -> Echo:
    return Echo()
