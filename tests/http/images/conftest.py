"""The image service in this process, empty."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kilonova.embedded.images.app import make_app, make_world
from kilonova.embedded.images.records import World
from kilonova.sql.engine import Database
from tests.http.images.picture import Client


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "bytes"


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    database = Database(f"sqlite:///{tmp_path}/images.db")
    yield database
    database.dispose()


@pytest.fixture
def world(database: Database, directory: Path) -> World:
    return make_world(database, directory)


@pytest.fixture
def app(world: World) -> Any:
    return make_app(world)


@pytest.fixture
def admin(app: Any) -> Client:
    return Client(app, "padmin", ("admin", "member", "reader"))


@pytest.fixture
def demo(app: Any) -> Client:
    return Client(app, "pdemo")


@pytest.fixture
def other(app: Any) -> Client:
    return Client(app, "pother")
