"""A virtual host for the tests of the bus, one for each process that runs tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.rabbitmq import virtual_host


@pytest.fixture(scope="session")
def rabbit_url() -> Iterator[str]:
    """Its URL; skips, and says why, where no broker may be used."""
    with virtual_host() as url:
        yield url
