"""`status`: each check says what it sees, and the worst of them counts."""

from __future__ import annotations

from pathlib import Path

import sqlalchemy as sa

from kilonova.core import ids
from kilonova.placement.store import schema
from kilonova.placement.store.claims import Claim
from kilonova.placement.store.operate.status import Check, Result, checks
from kilonova.sql.engine import Database
from tests.unit.placement.store.conftest import INCOMPLETE, Store


def by_name(database: Database) -> dict[str, Check]:
    return {check.name: check for check in checks(database, INCOMPLETE.project_id)}


def test_a_database_in_order_succeeds_in_every_check_and_is_counted(store: Store) -> None:
    host = store.provider("host", VCPU=8)
    store.provider("child", host)
    store.claim(ids.new_uuid(), {host: {"VCPU": 1}})
    found = by_name(store.database)
    assert {check.result for check in found.values()} == {Result.SUCCESS}
    assert found["Providers"].details == "2 in 1 trees"
    assert [found[name].details for name in ("Inventories", "Allocations", "Consumers")] == ["1", "1", "1"]
    assert found["Change log"].details.endswith("64 heads")


def test_incomplete_consumers_and_missing_names_are_warnings(store: Store) -> None:
    host = store.provider("host", VCPU=8)
    store.write(Claim(ids.new_uuid(), {host: {"VCPU": 1}}))
    with store.database.write() as connection:
        connection.execute(sa.delete(schema.traits).where(schema.traits.c.name == "HW_CPU_X86_AVX2"))
    found = by_name(store.database)
    worse = {name: check.details for name, check in found.items() if check.result is Result.WARNING}
    assert worse.keys() == {"Standard names", "Incomplete consumers"}
    assert worse["Standard names"].startswith("1 are missing (HW_CPU_X86_AVX2")
    assert worse["Incomplete consumers"].startswith("1 have no project")


def test_a_provider_without_a_root_is_a_failure(store: Store) -> None:
    store.provider("host")
    with store.database.write() as connection:
        connection.execute(sa.update(schema.resource_providers).values(root_id=None))
    assert by_name(store.database)["Roots"].result is Result.FAILURE


def test_checks_end_with_the_one_that_the_others_need(tmp_path: Path) -> None:
    empty = Database(f"sqlite:///{tmp_path}/empty.db")
    found = checks(empty, INCOMPLETE.project_id)
    assert [(check.name, check.result) for check in found] == [
        ("Database", Result.SUCCESS), ("Revision", Result.FAILURE),
    ]  # fmt: skip
    empty.dispose()
    away = Database("postgresql://nobody:secret@127.0.0.1:1/placement")
    (check,) = checks(away, INCOMPLETE.project_id)
    assert check.result is Result.FAILURE
    assert "does not answer" in check.details
    assert "secret" not in check.details
    away.dispose()
