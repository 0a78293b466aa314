"""What holds for every test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from oslo_context import context as oslo

from tests.databases import Shared
from tests.databases import shared as shared_databases


def pytest_itemcollected(item: pytest.Item) -> None:
    """Whole clouds on a database server run in one process of pytest: two at once want more connections than it has."""
    kind = getattr(item, "callspec", None) and item.callspec.params.get("places")  # type: ignore[attr-defined]
    if "/tests/deploy/" in item.path.as_posix() or kind in ("postgresql", "mariadb"):
        item.add_marker(pytest.mark.xdist_group("servers"))


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
