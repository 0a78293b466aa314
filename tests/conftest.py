"""What holds for every test."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from oslo_context import context as oslo
from xdist.scheduler import LoadScopeScheduling

from tests.databases import Shared
from tests.databases import shared as shared_databases


class _ServersTogether(LoadScopeScheduling):
    """Gives each test to whoever is free, but whole clouds on database servers to one worker: two at once want more
    connections than a server has, and would wait for each other.
    """

    def _split_scope(self, nodeid: str) -> str:
        story = nodeid.startswith("tests/scenario/") and ("[postgresql" in nodeid or "[mariadb" in nodeid)
        return "servers" if story or nodeid.startswith("tests/deploy/") else nodeid


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> _ServersTogether:
    """How the workers share the tests."""
    return _ServersTogether(config, log)


@pytest.fixture(autouse=True)
def no_request_under_way() -> None:
    """oslo.context keeps the newest context of a thread; the one of an earlier test is not this one's."""
    if oslo.get_current() is not None:
        del oslo._request_store.context


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shared]:
    """Databases that the tests of a process take in turns."""
    with shared_databases(tmp_path_factory.mktemp("shared")) as made:
        yield made
