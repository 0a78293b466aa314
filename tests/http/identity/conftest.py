"""The identity service in this process, as a new deployment has it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kilonova.embedded.identity.app import make_app, make_identity
from kilonova.embedded.identity.bootstrap import bootstrap
from kilonova.embedded.identity.world import Identity
from kilonova.sql.engine import Database
from tests.http.identity.account import BASE, PASSWORD, SERVICE_PASSWORD, Client, login


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    database = Database(f"sqlite:///{tmp_path}/identity.db")
    yield database
    database.dispose()


@pytest.fixture
def identity(database: Database) -> Identity:
    identity = make_identity(database)
    bootstrap(identity, admin_password=PASSWORD, service_password=SERVICE_PASSWORD, base_url=BASE)
    return identity


@pytest.fixture
def nobody(identity: Identity) -> Client:
    return Client(make_app(identity))


@pytest.fixture
def admin(nobody: Client) -> Client:
    return login(nobody, "admin", scope="admin")


@pytest.fixture
def demo(nobody: Client) -> Client:
    return login(nobody, "demo", scope="demo")


@pytest.fixture
def service(nobody: Client) -> Client:
    return login(nobody, "glance", SERVICE_PASSWORD, scope="service")
