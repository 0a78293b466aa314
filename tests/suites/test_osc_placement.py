"""osc-placement's own tests of its commands, over HTTP against our service."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kilonova.conf.load import load
from kilonova.core import json
from kilonova.http.server import HttpServer
from kilonova.placement.store.prepare import prepare
from kilonova.placement.store.schema import metadata
from kilonova.wiring.parts import WsgiApp
from kilonova.wiring.placement import placement_app
from tests.databases import Shared
from tests.deploy.peers import ENVIRONMENT
from tests.suites.test_placement_gabbi import free_port

RUNNER = Path(__file__).with_name("osc_runner.py")
PACKAGE = next(iter(ENVIRONMENT.glob("lib/python3*/site-packages/osc_placement/tests/functional")), None)


class Emptied:
    """The service; a POST to `/empty` makes it forget everything."""

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self._app: WsgiApp = self._made()

    def _made(self) -> WsgiApp:
        conf = load(overrides={"api.auth_strategy": "noauth2"}, application="placement", warn=False)
        return placement_app(conf, self._shared.empty("sqlite", "placement", metadata, prepare))

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Any:
        if environ["PATH_INFO"] != "/empty":
            return self._app(environ, start_response)
        self._app = self._made()
        start_response("204 No Content", [])
        return ()


@pytest.fixture
def service(shared: Shared) -> Iterator[str]:
    server = HttpServer(Emptied(shared), "127.0.0.1", port := free_port(), threads=1)
    server.start()
    yield f"http://127.0.0.1:{port}"
    server.stop()


@pytest.mark.skipif(PACKAGE is None, reason="the peers are not installed: make peers")
def test_every_command_does_what_its_own_tests_expect(service: str) -> None:
    programs = ENVIRONMENT / "bin"  # one test runs the command as a program
    ran = subprocess.run(
        [programs / "python", RUNNER, service], capture_output=True, text=True, timeout=300,
        env=os.environ | {"PATH": f"{programs}:{os.environ['PATH']}"},
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr[-3000:]
    results = {row["test"]: row["wrong"] for row in map(json.loads, ran.stdout.splitlines())}
    assert not {test: wrong[-2000:] for test, wrong in results.items() if wrong}
    assert PACKAGE is not None
    files = {path.stem for path in PACKAGE.glob("test_*.py")}
    assert {test.split(".")[-3] for test in results} == files
