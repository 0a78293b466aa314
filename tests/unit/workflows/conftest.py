from __future__ import annotations

from collections.abc import Iterator

import pytest

from kilonova.sql.engine import Database
from tests.unit.workflows.lab import Lab
from tests.workflows.harness import jumping_clock


@pytest.fixture
def lab(cell: Database) -> Iterator[Lab]:
    with jumping_clock() as jumping:
        made = Lab(cell, jumping)
        yield made
