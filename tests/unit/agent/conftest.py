from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kilonova.bus.local import LocalBus
from tests.unit.agent.fakes import Inline, Placement


@pytest.fixture
def placement() -> Placement:
    return Placement()


@pytest.fixture
def bus() -> Iterator[LocalBus]:
    made = LocalBus(Inline())
    yield made
    made.close()


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "agent"
