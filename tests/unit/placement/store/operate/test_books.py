"""Every fault of the books is found, and put right as far as it can be; what is right is left."""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy as sa

from kilonova.core import ids
from kilonova.placement.store import providers, schema
from kilonova.placement.store.operate import books
from kilonova.placement.store.operate.books import Finding
from tests.unit.placement.store.conftest import Store


def do(store: Store, statement: Any) -> None:
    with store.database.write() as connection:
        connection.execute(statement)


def id_of(store: Store, uuid: str) -> int:
    with store.database.read() as connection:
        statement = sa.select(schema.resource_providers.c.id).where(schema.resource_providers.c.uuid == uuid)
        return int(connection.execute(statement).scalar_one())


def of_provider(store: Store, table: sa.Table, uuid: str) -> Any:
    return (table.c.id if table is schema.resource_providers else table.c.provider_id) == id_of(store, uuid)


def found(store: Store) -> list[Finding]:
    return list(books.audit(store.database))


def mend(store: Store) -> list[bool]:
    return [books.mend(store.writer, finding) for finding in found(store)]


@pytest.fixture
def host(store: Store) -> str:
    """A provider of whose 8 VCPU 3 are held."""
    made = store.provider("host", VCPU=8, MEMORY_MB=64)
    store.claim(ids.new_uuid(), {made: {"VCPU": 3}})
    store.keeper.current()
    return made


def test_books_that_are_right_have_no_findings(store: Store, host: str) -> None:
    store.provider("child", host, VCPU=1)
    assert found(store) == []


@pytest.mark.parametrize("used", [0, 7])
def test_use_that_is_not_the_sum_is_found_and_becomes_it(store: Store, host: str, used: int) -> None:
    where = sa.and_(of_provider(store, schema.inventories, host), schema.inventories.c.used == 3)
    do(store, sa.update(schema.inventories).where(where).values(used=used))
    (finding,) = found(store)
    assert (finding.check, finding.warning) == ("used", False)
    assert (finding.subject, finding.text) == (f"VCPU of host ({host})", f"used is {used}, the allocations are 3")
    assert mend(store) == [True]
    assert found(store) == []
    assert store.used(host)["VCPU"] == 3  # a reader that held the old number has been told
    store.assert_consistent()


def test_use_above_capacity_is_a_warning_that_nothing_is_done_about(store: Store, host: str) -> None:
    store.stock(host, VCPU=2)
    (finding,) = found(store)
    assert (finding.check, finding.warning, finding.key) == ("over-capacity", True, 0)
    assert finding.text == "used is 3 of 2"
    assert mend(store) == [False]


def test_a_capacity_that_its_numbers_do_not_make_is_computed_anew(store: Store, host: str) -> None:
    where = sa.and_(of_provider(store, schema.inventories, host), schema.inventories.c.total == 8)
    do(store, sa.update(schema.inventories).where(where).values(capacity=80))
    (finding,) = found(store)
    assert (finding.check, finding.text) == ("capacity", "capacity is 80, total, reserved and ratio make 8")
    mend(store)
    assert found(store) == []
    store.assert_consistent()


def test_allocations_without_an_inventory_get_one_without_room_so_that_they_can_be_given_back(
    store: Store, host: str
) -> None:
    consumer = ids.new_uuid()
    store.claim(consumer, {host: {"MEMORY_MB": 16}})
    names = store.keeper.current().names
    where = sa.and_(
        of_provider(store, schema.inventories, host), schema.inventories.c.class_id == names.class_ids["MEMORY_MB"]
    )
    do(store, sa.delete(schema.inventories).where(where))
    (finding,) = found(store)
    assert (finding.check, finding.warning) == ("no-inventory", False)
    assert finding.text == "16 allocated and no inventory, so they cannot be given back"
    assert mend(store) == [True]
    assert [(one.check, one.warning) for one in found(store)] == [("over-capacity", True)]
    store.claim(consumer, {}, 1)
    assert store.used(host) == {"VCPU": 3, "MEMORY_MB": 0}
    assert found(store) == []


def test_a_consumer_that_holds_nothing_is_removed(store: Store, host: str) -> None:
    row = {"uuid": ids.new_uuid(), "project_id": "p", "user_id": "u", "generation": 0}
    do(store, sa.insert(schema.consumers).values(row))
    (finding,) = found(store)
    assert (finding.check, finding.subject) == ("idle", f"consumer {row['uuid']}")
    mend(store)
    assert found(store) == []
    store.claim(row["uuid"], {host: {"VCPU": 1}})  # which its old record would have refused


def test_a_consumer_that_holds_something_by_now_is_left(store: Store, host: str) -> None:
    row = {"uuid": ids.new_uuid(), "project_id": "p", "user_id": "u", "generation": 1}
    do(store, sa.insert(schema.consumers).values(row))
    (finding,) = found(store)
    store.claim(row["uuid"], {host: {"VCPU": 1}}, 1)
    books.mend(store.writer, finding)
    assert store.used(host)["VCPU"] == 4
    store.assert_consistent()


@pytest.mark.parametrize("root", ["none", "another"])
def test_a_wrong_root_becomes_the_topmost_ancestor(store: Store, host: str, root: str) -> None:
    child = store.provider("child", host)
    grandchild = store.provider("grandchild", child)
    wrong = None if root == "none" else id_of(store, child)
    where = of_provider(store, schema.resource_providers, grandchild)
    do(store, sa.update(schema.resource_providers).where(where).values(root_id=wrong))
    (finding,) = found(store)
    said = "none" if root == "none" else "child"
    assert (finding.check, finding.text) == ("tree", f"its root is {said}, its topmost ancestor host")
    assert mend(store) == [True]
    assert found(store) == []
    with store.database.read() as connection:
        assert {row.root_uuid for row in providers.tree_of(connection, host)} == {host}


def test_a_loop_is_said_and_left(store: Store) -> None:
    one = store.provider("one")
    two = store.provider("two", one)
    where = of_provider(store, schema.resource_providers, one)
    do(store, sa.update(schema.resource_providers).where(where).values(parent_id=id_of(store, two)))
    assert {finding.subject for finding in found(store)} == {f"one ({one})", f"two ({two})"}
    assert mend(store) == [False, False]


def test_a_repair_looks_again_and_leaves_what_has_come_right_meanwhile(store: Store, host: str) -> None:
    where = sa.and_(of_provider(store, schema.inventories, host), schema.inventories.c.used == 3)
    do(store, sa.update(schema.inventories).where(where).values(used=5))
    (finding,) = found(store)
    other = sa.and_(of_provider(store, schema.inventories, host), schema.inventories.c.used == 5)
    do(store, sa.update(schema.inventories).where(other).values(used=3))
    store.claim(ids.new_uuid(), {host: {"VCPU": 2}})
    books.mend(store.writer, finding)
    assert store.used(host)["VCPU"] == 5
    store.assert_consistent()
