"""The snapshot is current at every read, in the process that wrote and in every other."""

from __future__ import annotations

import random
import threading
from contextlib import suppress

import pytest
import sqlalchemy as sa

from kilonova.core import clock, ids
from kilonova.core.errors import KilonovaError
from kilonova.placement.store import aggregates, changes, keeper, providers, traits
from kilonova.placement.store.schema import inventories as table
from kilonova.placement.store.transactions import Transaction
from kilonova.sql.engine import Database
from tests.unit.placement.store.conftest import Store


@pytest.fixture
def other(database: Database) -> Store:
    """Another process on the same database."""
    return Store.of(database)


def test_what_one_process_writes_the_other_sees_at_its_next_read(store: Store, other: Store) -> None:
    host = store.provider("host", VCPU=10)
    assert other.used(host) == {"VCPU": 0}
    store.claim(ids.new_uuid(), {host: {"VCPU": 3}})
    assert other.used(host) == {"VCPU": 3}
    assert store.used(host) == {"VCPU": 3}
    other.claim(ids.new_uuid(), {host: {"VCPU": 2}})
    assert store.used(host) == other.used(host) == {"VCPU": 5}
    assert (store.keeper.rebuilds, other.keeper.rebuilds) == (1, 1)


def test_an_unchanged_store_gives_the_same_snapshot(store: Store) -> None:
    store.provider("host", VCPU=10)
    assert store.keeper.current().snapshot is store.keeper.current().snapshot


def test_a_reader_keeps_the_snapshot_it_has(store: Store) -> None:
    host = store.provider("host", VCPU=10)
    before = store.keeper.current().snapshot
    store.claim(ids.new_uuid(), {host: {"VCPU": 3}})
    after = store.keeper.current().snapshot
    column = next(iter(before.columns.values()))
    assert column.used.tolist() == [0]
    assert next(iter(after.columns.values())).used.tolist() == [3]


def test_writers_and_readers_of_two_processes_miss_nothing(store: Store, other: Store) -> None:
    hosts = [store.provider(f"host{n}", VCPU=1000) for n in range(6)]
    ended = threading.Event()
    broken: list[BaseException] = []

    def write(side: Store, seed: int) -> None:
        chance = random.Random(seed)
        try:
            for _ in range(25):
                host = chance.choice(hosts)
                side.claim(ids.new_uuid(), {host: {"VCPU": 1}})
                side.used(host)
        except BaseException as error:
            broken.append(error)

    def read(side: Store) -> None:
        last = 0
        try:
            while not ended.is_set():
                used = sum(side.used(host)["VCPU"] for host in hosts)
                assert used >= last, "a snapshot went back"
                last = used
        except BaseException as error:
            broken.append(error)

    writers = [threading.Thread(target=write, args=(side, n)) for n, side in enumerate((store, other, store, other))]
    readers = [threading.Thread(target=read, args=(side,)) for side in (store, other)]
    for thread in (*writers, *readers):
        thread.start()
    for thread in writers:
        thread.join()
    ended.set()
    for thread in readers:
        thread.join()
    assert broken == []
    for side in (store, other):
        assert sum(side.used(host)["VCPU"] for host in hosts) == 100
        side.assert_consistent()
        assert side.keeper.drifts == 0


def test_random_changes_of_every_kind_leave_both_snapshots_equal_to_the_store(store: Store, other: Store) -> None:
    chance = random.Random(7)
    hosts: list[str] = []

    def trial(n: int) -> None:
        kind = chance.choice(("new", "child", "move", "stock", "claim", "claim", "traits", "aggregates", "delete"))
        host = chance.choice(hosts) if hosts else ""
        if kind == "new" or not hosts:
            hosts.append(store.provider(f"p{n}", VCPU=9, DISK_GB=9))
        elif kind == "child":
            hosts.append(store.provider(f"p{n}", host, VCPU=9))
        elif kind == "move":
            parent = chance.choice([*hosts, None])
            store.writer.run(lambda tx: providers.update(tx, host, f"m{n}", parent=(parent,), reparenting=True))
        elif kind == "stock":
            store.stock(host, VCPU=chance.randint(9, 12), MEMORY_MB=8)
        elif kind == "claim":
            store.claim(ids.new_uuid(), {host: {"VCPU": 1}})
        elif kind == "traits":
            names = store.keeper.current().names
            wanted = chance.sample(sorted(names.trait_ids)[:5], 2)
            store.writer.run(lambda tx: traits.replace(tx, host, None, wanted, names))
        elif kind == "aggregates":
            store.writer.run(lambda tx: aggregates.replace(tx, host, [ids.new_uuid()], compare=True))
        else:
            store.writer.run(lambda tx: providers.delete(tx, host))
            hosts.remove(host)

    for n in range(120):
        with suppress(KilonovaError):  # loops, parents, use: refusals are part of the game
            trial(n)
        store.keeper.current()
        if n % 10 == 0:
            other.keeper.current()
    store.assert_consistent()
    other.assert_consistent()


def test_a_reader_behind_the_pruned_log_starts_anew(store: Store, other: Store) -> None:
    host = store.provider("host", VCPU=100)
    other.keeper.current()
    for _ in range(3):
        store.claim(ids.new_uuid(), {host: {"VCPU": 1}})
    with store.database.write() as connection:
        connection.execute(sa.delete(changes.changes))
    assert other.used(host) == {"VCPU": 3}
    assert other.keeper.rebuilds == 2


def test_the_log_keeps_only_so_many_revisions_per_slot(store: Store) -> None:
    def touch(tx: Transaction) -> None:
        tx.connection.info.update(slot=5, until_prune=0)
        changes.append(tx.connection, {1: changes.What.USAGE}, keep=2)

    for _ in range(12):
        store.writer.run(touch)
    with store.database.read() as connection:
        kept = connection.execute(
            sa.select(changes.changes.c.revision).where(changes.changes.c.slot == 5).order_by("revision")
        ).scalars().all()
        head = changes.heads(connection)[5]
    assert kept == [head - 1, head]


def test_a_snapshot_that_drifted_is_found_by_the_checksum_and_read_anew(store: Store) -> None:
    host = store.provider("host", VCPU=100)
    assert store.used(host) == {"VCPU": 0}
    with store.database.write() as connection:  # behind the log's back
        connection.execute(sa.update(table).values(used=7))
    assert store.used(host) == {"VCPU": 0}
    before = clock.install(_Later(clock.monotonic() + keeper.CHECK_SECONDS + 1))
    try:
        assert store.used(host) == {"VCPU": 7}
    finally:
        clock.install(before)
    assert store.keeper.drifts == 1


class _Later(clock.SystemClock):
    def __init__(self, now: float) -> None:
        self._now = now

    def monotonic(self) -> float:
        return self._now
