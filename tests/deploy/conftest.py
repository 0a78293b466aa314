"""One deployment per kind of database for all tests of this folder. They run in one worker, one after the other."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.deploy.deployment import HOSTS, deployment
from tests.deploy.people import People


@pytest.hookimpl(tryfirst=True)  # before xdist reads the marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Who use a deployment use the same one: `pytest -n 2 --dist loadgroup` keeps them together."""
    for item in items:
        if "people" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("deployment"))


@pytest.fixture(scope="session", params=["postgresql", "mariadb"])
def people(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[People]:
    """The users of a deployment of two processes each, on each kind of database there is; the same for all tests."""
    with deployment(request.param, tmp_path_factory.mktemp("deploy")) as made:
        found = People(made)
        found.settle_in(2 * HOSTS)
        yield found
