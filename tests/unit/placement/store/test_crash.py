"""A write that dies at any statement, before or after it, leaves all of it or nothing, and snapshots recover."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import pytest
import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.engine import Connection

from kilonova.core import ids
from kilonova.placement.store import aggregates, claims, classes, inventories, providers, reshape, schema, traits
from kilonova.placement.store.claims import Claim
from kilonova.placement.store.inventories import Inventory
from kilonova.placement.store.reshape import Stock
from kilonova.placement.store.transactions import Transaction
from tests.unit.placement.store.conftest import INCOMPLETE, Store

ROOT, CHILD, LEAF, OTHER, SPARE = (f"0000000{n}-0000-4000-8000-000000000000" for n in range(1, 6))
ONE, TWO, NEW = (f"0000000{n}-0000-4000-8000-00000000000c" for n in range(1, 4))
AGGREGATE = "00000001-0000-4000-8000-00000000000a"

Work = Callable[[Store], object]
Step = Callable[[Store, Transaction], object]


class Killed(BaseException):
    """The process ends here."""


def _world(store: Store) -> None:
    """A tree with use, and another provider."""
    for uuid, parent in ((ROOT, None), (CHILD, ROOT), (LEAF, CHILD), (OTHER, None), (SPARE, OTHER)):
        store.writer.run(lambda tx, uuid=uuid, parent=parent: providers.create(tx, uuid, uuid[:8], parent))
    store.stock(ROOT, VCPU=8, DISK_GB=80)
    store.stock(CHILD, VCPU=8, MEMORY_MB=64)
    store.stock(OTHER, VCPU=8)
    store.claim(ONE, {ROOT: {"VCPU": 2, "DISK_GB": 10}, CHILD: {"VCPU": 1}})
    store.claim(TWO, {ROOT: {"VCPU": 3}})
    names = store.keeper.current().names
    store.writer.run(lambda tx: classes.ensure(tx, "CUSTOM_OLD"))
    store.writer.run(lambda tx: traits.create(tx, "CUSTOM_OLD"))
    store.writer.run(lambda tx: traits.replace(tx, CHILD, None, ["HW_CPU_X86_VMX"], names))
    store.writer.run(lambda tx: aggregates.replace(tx, CHILD, [AGGREGATE], compare=True))


def _stock(**totals: int) -> dict[str, Inventory]:
    return {name: Inventory(total) for name, total in totals.items()}


def _claims(*wanted: Claim) -> Work:
    return lambda store: store.write(*wanted)


def _step(step: Step) -> Work:
    return lambda store: store.writer.run(lambda tx: step(store, tx))


def _claim(consumer: str, amounts: dict[str, dict[str, int]], generation: int | None) -> Claim:
    return Claim(consumer, amounts, "p2", "u2", "NEW_TYPE", True, generation)


def _reshape(store: Store) -> None:
    """Moves a class with its use from the root to its child."""
    stocks = {
        ROOT: Stock(3, _stock(DISK_GB=80)),
        CHILD: Stock(4, _stock(VCPU=16, MEMORY_MB=64)),
    }
    wanted = [
        _claim(ONE, {ROOT: {"DISK_GB": 10}, CHILD: {"VCPU": 3}}, 1), _claim(TWO, {CHILD: {"VCPU": 3}}, 1),
    ]  # fmt: skip
    reshape.reshape(store.writer, store.keeper.latest.names, stocks, wanted, INCOMPLETE)


def _names(store: Store) -> Any:
    return store.keeper.latest.names


WRITES: dict[str, Work] = {
    "create a provider": _step(lambda store, tx: providers.create(tx, NEW, "new", None)),
    "create a child": _step(lambda store, tx: providers.create(tx, NEW, "new", LEAF)),
    "rename a provider": _step(lambda store, tx: providers.update(tx, CHILD, "new", parent=None, reparenting=True)),
    "move a subtree": _step(lambda store, tx: providers.update(tx, CHILD, "new", parent=(OTHER,), reparenting=True)),
    "make a child a root": _step(
        lambda store, tx: providers.update(tx, CHILD, "new", parent=(None,), reparenting=True)
    ),
    "delete a provider": _step(lambda store, tx: providers.delete(tx, SPARE)),
    "replace inventories": _step(lambda store, tx: inventories.replace(
        tx, CHILD, None, _stock(VCPU=9, DISK_GB=7), _names(store)
    )),
    "add an inventory": _step(lambda store, tx: inventories.add(tx, CHILD, "DISK_GB", Inventory(7), _names(store))),
    "change an inventory": _step(
        lambda store, tx: inventories.change(tx, OTHER, 1, "VCPU", Inventory(9), _names(store))
    ),
    "delete an inventory": _step(lambda store, tx: inventories.remove(tx, OTHER, "VCPU", _names(store))),
    "delete all inventories": _step(lambda store, tx: inventories.replace(tx, OTHER, None, {}, _names(store))),
    "replace traits": _step(lambda store, tx: traits.replace(tx, CHILD, None, ["HW_CPU_X86_AVX2"], _names(store))),
    "delete traits": _step(lambda store, tx: traits.replace(tx, CHILD, None, [], _names(store))),
    "replace aggregates": _step(lambda store, tx: aggregates.replace(tx, CHILD, [ids.new_uuid()], compare=True)),
    "create a trait": _step(lambda store, tx: traits.create(tx, "CUSTOM_NEW")),
    "delete a trait": _step(lambda store, tx: traits.delete(tx, "CUSTOM_OLD")),
    "create a class": _step(lambda store, tx: classes.ensure(tx, "CUSTOM_NEW")),
    "rename a class": _step(lambda store, tx: classes.rename(tx, "CUSTOM_OLD", "CUSTOM_NEW")),
    "delete a class": _step(lambda store, tx: classes.delete(tx, "CUSTOM_OLD")),
    "claim": _claims(_claim(NEW, {ROOT: {"VCPU": 2}, OTHER: {"VCPU": 1}}, None)),
    "move a claim": _claims(_claim(ONE, {OTHER: {"VCPU": 4}}, 1)),
    "empty a claim": _claims(_claim(ONE, {}, 1)),
    "release a claim": lambda store: claims.release(store.writer, ONE),
    "claim for many": _claims(_claim(ONE, {OTHER: {"VCPU": 4}}, 1), _claim(NEW, {CHILD: {"VCPU": 4}}, None)),
    "reshape": _reshape,
}


def _picture(connection: Connection) -> dict[str, list[tuple[Any, ...]]]:
    """Everything that is stored, but for the change log and the times."""
    kept = [table for table in schema.metadata.sorted_tables if table.name not in ("changes", "change_heads")]
    found = {}
    for table in kept:
        columns = [one for one in table.c if one.name not in ("created_at", "updated_at")]
        found[table.name] = sorted((tuple(row) for row in connection.execute(sa.select(*columns))), key=repr)
    return found


def _seen(store: Store) -> dict[str, list[tuple[Any, ...]]]:
    with store.database.read() as connection:
        return _picture(connection)


def _will_be(store: Store, work: Work) -> dict[str, list[tuple[Any, ...]]]:
    """What is there after the write, which is taken back."""
    found: list[dict[str, list[tuple[Any, ...]]]] = []

    def look(connection: Connection) -> None:
        found.append(_picture(connection))
        connection.connection.driver_connection.rollback()  # type: ignore[union-attr]
        raise Killed

    engine = store.database._writer
    event.listen(engine, "commit", look)
    try:
        with pytest.raises(Killed):
            work(store)
    finally:
        event.remove(engine, "commit", look)
    return found[0]


@contextmanager
def dying(store: Store, at: int, *, after: bool) -> Iterator[list[str]]:
    """The connection breaks and the writer ends at the statement of this number; what was run is in the list."""
    run: list[str] = []
    engine = store.database._writer

    def before_one(connection: Connection, cursor: Any, statement: str, *rest: Any) -> None:
        run.append(statement)
        if len(run) == at and not after:
            _die(connection.connection)

    def after_one(connection: Connection, *rest: Any) -> None:
        if len(run) == at and after:
            _die(connection.connection)

    event.listen(engine, "before_cursor_execute", before_one)
    event.listen(engine, "after_cursor_execute", after_one)
    try:
        yield run
    finally:
        event.remove(engine, "before_cursor_execute", before_one)
        event.remove(engine, "after_cursor_execute", after_one)


def _die(connection: Any) -> None:
    driver = connection.driver_connection
    if isinstance(driver, sqlite3.Connection):
        driver.rollback()  # as the next who opens the file would; it stays locked while a cursor is somewhere
    driver.close()
    raise Killed


@contextmanager
def dying_at_commit(store: Store, *, after: bool) -> Iterator[None]:
    """The same at the commit: before the database has heard of it, or after it has done it."""
    dialect = store.database._writer.dialect
    commit = dialect.do_commit

    def broken(connection: Any) -> None:
        if after:
            commit(connection)
        _die(connection)

    with patch.object(dialect, "do_commit", broken):
        yield


def _dies(store: Store, work: Work) -> bool:
    try:
        work(store)
    except (Killed, sa.exc.DBAPIError):  # the broken connection may be noticed at the roll-back
        return True
    return False


def _trees_are_whole(store: Store) -> None:
    rows = {row[0]: row for row in _seen(store)["resource_providers"]}
    names = [column.name for column in schema.resource_providers.c if column.name not in ("created_at", "updated_at")]
    parent, root = names.index("parent_id"), names.index("root_id")
    for row in rows.values():
        top = row
        while top[parent] is not None:
            top = rows[top[parent]]
        assert row[root] == top[0]


@pytest.mark.parametrize("name", WRITES)
def test_a_write_that_dies_at_a_statement_leaves_nothing_and_at_the_end_all(store: Store, name: str) -> None:
    _world(store)
    work = WRITES[name]
    store.keeper.current()
    before, will_be = _seen(store), _will_be(store, work)
    assert before != will_be
    count = 0
    for at in range(1, 200):
        for after in (False, True):
            with dying(store, at, after=after) as run:
                died = _dies(store, work)
            if not died:
                break
            count = max(count, len(run))
            assert _seen(store) == before, (run[-1], after)
            store.keeper.current()
        if not died:
            break
    else:
        pytest.fail("the write has no end")
    assert count >= 4
    store.assert_consistent()  # the write that lived
    assert _told(_seen(store)) == _told(will_be)


def _told(picture: dict[str, list[tuple[Any, ...]]]) -> dict[str, int]:
    """How many rows there are of each kind: ids differ from one attempt to the next."""
    return {name: len(rows) for name, rows in picture.items()}


@pytest.mark.parametrize("name", WRITES)
def test_a_write_that_dies_at_its_commit_leaves_nothing_or_all_and_every_snapshot_agrees(
    store: Store, name: str
) -> None:
    _world(store)
    work = WRITES[name]
    store.keeper.current()
    before = _seen(store)
    with dying_at_commit(store, after=False):
        assert _dies(store, work)
    assert _seen(store) == before
    store.assert_consistent()
    will_be = _told(_will_be(store, work))
    with dying_at_commit(store, after=True):
        assert _dies(store, work)
    assert _seen(store) != before
    assert _told(_seen(store)) == will_be
    _trees_are_whole(store)
    for side in (store, Store.of(store.database)):
        side.assert_consistent()
        assert side.keeper.drifts == 0
    store.claim(ids.new_uuid(), {ROOT: {"DISK_GB": 1}})  # and life goes on
    store.assert_consistent()
