from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.workflows.lab import Lab
from tests.workflows.harness import jumping_clock
from tests.workflows.toy import CELL


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    with jumping_clock() as jumping:
        made = Lab(tmp_path, jumping)
        yield made
        made.world.database(CELL)[0].dispose()
