"""One deployment per kind of database for all tests of this folder. Workers of pytest take turns: see `alone`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.deploy.deployment import HOSTS, deployment
from tests.deploy.people import People


@pytest.fixture(scope="session", params=["postgresql", "mariadb"])
def people(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[People]:
    """The users of a deployment of two processes each, on each kind of database there is; the same for all tests."""
    with deployment(request.param, tmp_path_factory.mktemp("deploy")) as made:
        found = People(made)
        found.settle_in(2 * HOSTS)
        yield found
