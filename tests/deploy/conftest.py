"""One deployment per kind of database for all tests of this folder. They run in one worker, one after the other."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.deploy.deployment import Deployment, deployment


@pytest.fixture(scope="session", params=["postgresql", "mariadb"])
def deployed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """A deployment of two processes each, on each kind of database there is."""
    with deployment(request.param, tmp_path_factory.mktemp("deploy")) as made:
        yield made
