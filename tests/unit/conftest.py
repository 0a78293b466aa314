"""Databases for tests of what reads and writes them. Such a test runs on each kind of database that is at hand."""

from __future__ import annotations

import pytest

from kilonova.db import api_schema, cell_schema
from kilonova.sql.engine import Database
from tests.databases import KINDS, Shared

CELL = "11111111-1111-1111-1111-111111111111"


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    """The kind of all databases of a test."""
    return str(request.param)


@pytest.fixture
def cell(shared: Shared, kind: str) -> Database:
    """An empty cell database."""
    return shared.empty(kind, "cell", cell_schema.metadata)


@pytest.fixture
def api(shared: Shared, kind: str) -> Database:
    """An API database with nothing but one cell on record."""
    made = shared.empty(kind, "api", api_schema.metadata)
    with made.write() as connection:
        row = {"uuid": CELL, "name": "cell1", "transport_url": "", "database_connection": ""}
        connection.execute(api_schema.cell_mappings.insert(), row)
    return made
