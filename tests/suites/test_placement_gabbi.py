"""OpenStack Placement's own tests of its API, each file on each kind of database, over HTTP.

They come with the package in requirements-peers.lock (`make peers`) and are run as they are.
"""

from __future__ import annotations

import socket
import unittest
from pathlib import Path
from typing import Any, Final

import pytest
from gabbi import handlers, suitemaker, utils

from kilonova.http.server import HttpServer
from kilonova.placement.store.prepare import prepare
from kilonova.placement.store.schema import metadata
from tests.databases import KINDS, Shared
from tests.deploy.peers import ENVIRONMENT
from tests.suites.placement_stage import Stage, fixtures

FILES: Final = sorted(ENVIRONMENT.glob("lib/python3*/site-packages/placement/tests/functional/gabbits/*.yaml"))

NOT_APPLICABLE: Final = {
    ("basic-http", "bad content length not int"):
        "gabbi's client does not send it, and our HTTP server answers it (400) before the service is asked",
}  # fmt: skip
"""(file, step) to the reason why it fails and is to."""

_ABSENT = pytest.param(None, marks=pytest.mark.skip("the peers are not installed: make peers"), id="absent")


@pytest.mark.parametrize("file", FILES or [_ABSENT], ids=lambda file: file.stem)
@pytest.mark.parametrize("kind", KINDS)
def test_a_file_of_the_suite(kind: str, file: Path, shared: Shared, tmp_path: Path) -> None:
    stage = Stage(shared.empty(kind, "placement", metadata, prepare), tmp_path)
    server = HttpServer(stage, "127.0.0.1", port := free_port(), threads=2)
    server.start()
    try:
        with fixtures(file.parents[1] / "fixtures" / "gabbits.py", stage) as module:
            result = _suite(file, port, module).run(unittest.TestResult())
    finally:
        server.stop()
    failed = [*result.failures, *result.errors, *result.skipped]
    failed += [(test, "It passes now, so it is applicable.") for test in result.unexpectedSuccesses]
    assert not failed, "\n\n".join(f"{test.shortDescription()}: {why}" for test, why in failed)
    assert result.testsRun


def test_what_is_not_applicable_is_there() -> None:
    if not FILES:
        pytest.skip("the peers are not installed: make peers")
    there = {(file.stem, step["name"]) for file in FILES for step in _document(file)["tests"]}
    assert set(NOT_APPLICABLE) <= there


def _document(file: Path) -> Any:
    return utils.load_yaml(yaml_file=str(file))


def _suite(file: Path, port: int, module: Any) -> unittest.TestSuite:
    document = _document(file)
    document.setdefault("defaults", {})["cert_validate"] = False  # reading certificates takes longer than most steps
    for step in document["tests"]:
        if (file.stem, step["name"]) in NOT_APPLICABLE:
            step["xfail"] = True
    made: unittest.TestSuite = suitemaker.test_suite_from_dict(
        unittest.TestLoader(), file.stem, document, str(file.parent), "127.0.0.1", port, module, None,
        handlers=[handler() for handler in handlers.RESPONSE_HANDLERS], test_loader_name=file.stem,
    )  # fmt: skip
    return made


def free_port() -> int:
    """A port that nobody listens at."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])
