"""Databases of a test's own on the servers that KILONOVA_TEST_POSTGRESQL and KILONOVA_TEST_MARIADB name."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
import sqlalchemy as sa

from kilonova.core import ids

SERVERS = {"postgresql": "KILONOVA_TEST_POSTGRESQL", "mariadb": "KILONOVA_TEST_MARIADB"}


@contextmanager
def databases(kind: str, names: tuple[str, ...]) -> Iterator[Callable[[str], str]]:
    """Makes a database per name; answers the function from name to URL. All are gone afterwards.

    Skips the test, and says why, where there is no server.
    """
    url = os.environ.get(SERVERS[kind])
    if not url:
        pytest.skip(f"{SERVERS[kind]} names no server")
    server = sa.create_engine(url, isolation_level="AUTOCOMMIT")
    prefix = f"kilonova_test_{ids.new_hex()[:8]}"
    force = " WITH (FORCE)" if kind == "postgresql" else ""

    def do(statement: str) -> None:
        with server.connect() as connection:
            connection.execute(sa.text(statement))

    for name in names:
        do(f"CREATE DATABASE {prefix}_{name}")
    try:
        yield lambda name: server.url.set(database=f"{prefix}_{name}").render_as_string(hide_password=False)
    finally:
        for name in names:
            do(f"DROP DATABASE {prefix}_{name}{force}")
        server.dispose()
