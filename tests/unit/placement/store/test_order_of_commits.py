"""Transactions that commit in another order than their ids and revisions came in: no reader misses one.

Not on SQLite, which lets one transaction write at a time: they commit in the order they began.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from kilonova.core import ids
from kilonova.placement.store import changes, providers
from kilonova.placement.store.changes import What
from kilonova.placement.store.transactions import Transaction
from tests.deploy.servers import SERVERS
from tests.unit.placement.store.conftest import Store


@pytest.fixture(params=SERVERS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def writers(store: Store) -> tuple[Store, Store]:
    """Two processes."""
    return store, Store.of(store.database)


@contextmanager
def appended(side: Store, slot: int) -> Iterator[str]:
    """A new provider in a transaction that has written its log entry, in this slot, and commits at the end.

    Its name was never there: MariaDB locks the neighbourhood of one that was deleted a moment ago.
    """
    uuid = ids.new_uuid()
    with side.database.write() as connection:
        connection.info.update(slot=slot, until_prune=1000)
        transaction = Transaction(connection)
        providers.create(transaction, uuid, uuid, None)
        changes.append(connection, transaction.touched)
        yield uuid


def _seen(side: Store) -> set[str]:
    return {shown.uuid for shown in side.keeper.current().snapshot.shown if shown is not None}


@pytest.mark.parametrize("slots", [(5, 6), (6, 5)])
def test_who_commits_first_is_seen_first_whatever_the_ids_say(
    writers: tuple[Store, Store], slots: tuple[int, int]
) -> None:
    one, two = writers
    for side in writers:
        side.keeper.current()
    with appended(one, slots[0]) as early:
        with appended(two, slots[1]) as late:
            assert _seen(one) == _seen(two) == set()
        assert _seen(one) == _seen(two) == {late}
    assert _seen(one) == _seen(two) == {early, late}
    for side in writers:
        side.assert_consistent()
        assert side.keeper.rebuilds == 1


def test_many_interleaved_commits_are_each_seen_by_every_reader_at_once(writers: tuple[Store, Store]) -> None:
    one, two = writers
    committed: set[str] = set()
    for turn in range(5):
        with appended(one, turn) as first:
            with appended(two, 63 - turn) as second:
                with appended(one, 31) as third:
                    assert _seen(two) == committed
                committed.add(third)
                assert _seen(one) == committed
            committed.add(second)
            assert _seen(two) == committed
        committed.add(first)
        assert _seen(one) == _seen(two) == committed


def test_in_one_slot_the_second_waits_so_that_revisions_commit_in_order(writers: tuple[Store, Store]) -> None:
    one, two = writers
    done, late = threading.Event(), []

    def second() -> None:
        with appended(two, 7) as uuid:
            late.append(uuid)
        done.set()

    thread = threading.Thread(target=second)
    with appended(one, 7) as early:
        thread.start()
        assert _seen(two) == set()
        assert not done.is_set()
    thread.join()
    assert _seen(one) == _seen(two) == {early, *late}


def test_a_claim_on_a_provider_that_another_open_transaction_changed_waits_and_both_count(
    writers: tuple[Store, Store]
) -> None:
    one, two = writers
    host = one.provider("host", VCPU=8)
    two.keeper.current()
    held = threading.Event()
    go_on = threading.Event()

    def first() -> None:
        with one.database.write() as connection:
            transaction = Transaction(connection)
            row = providers.advance(transaction, host, None, what=What.USAGE)
            changes.append(connection, {row.id: What.USAGE})
            held.set()
            assert go_on.wait(20)

    holding = threading.Thread(target=first)
    holding.start()
    assert held.wait(20)
    claiming = threading.Thread(target=two.claim, args=(ids.new_uuid(), {host: {"VCPU": 3}}))
    claiming.start()
    assert two.used(host) == {"VCPU": 0}
    go_on.set()
    holding.join()
    claiming.join()
    assert one.used(host) == two.used(host) == {"VCPU": 3}
    with one.database.read() as connection:
        assert providers.show(connection, host).generation == 3
