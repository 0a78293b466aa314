"""Databases of their own for tests of what reads and writes them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kilonova.db import api_schema, cell_schema
from kilonova.sql.engine import Database

CELL = "11111111-1111-1111-1111-111111111111"


@pytest.fixture
def cell(tmp_path: Path) -> Iterator[Database]:
    """A fresh cell database."""
    made = Database(f"sqlite:///{tmp_path}/cell.db")
    with made.write() as connection:
        cell_schema.metadata.create_all(connection)
    yield made
    made.dispose()


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Database]:
    """A fresh API database with one cell on record."""
    made = Database(f"sqlite:///{tmp_path}/api.db")
    with made.write() as connection:
        api_schema.metadata.create_all(connection)
        row = {"uuid": CELL, "name": "cell1", "transport_url": "", "database_connection": ""}
        connection.execute(api_schema.cell_mappings.insert(), row)
    yield made
    made.dispose()
