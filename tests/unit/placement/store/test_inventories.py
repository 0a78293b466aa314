"""Inventories, trees and names as the store keeps them, on every database."""

from __future__ import annotations

import threading
from contextlib import suppress
from dataclasses import asdict

import pytest
import sqlalchemy as sa

from kilonova.core import ids
from kilonova.core.errors import KilonovaError
from kilonova.placement.errors import BadRequest, DuplicateName, InventoryInUse, ProviderInUse
from kilonova.placement.store import inventories, names, providers, reading, reshape, traits
from kilonova.placement.store.claims import Claim, Incomplete
from kilonova.placement.store.inventories import Inventory
from kilonova.placement.store.prepare import prepare
from kilonova.placement.store.reshape import Stock
from tests.unit.placement.store.conftest import Store


def test_an_inventory_comes_back_as_it_was_given(store: Store) -> None:
    given = Inventory(100, 7, 2, 50, 2, 1.15)
    host = store.provider("host", VCPU=given)
    with store.database.read() as connection:
        found = inventories.of(connection, providers.show(connection, host).id)
    assert [asdict(one.inventory) for one in found] == [asdict(given)]
    assert isinstance(found[0].inventory.allocation_ratio, float)


@pytest.mark.parametrize(
    ("total", "reserved", "ratio", "capacity"),
    [(100, 0, 1.15, 114), (10, 3, 1.0, 7), (10, 10, 16.0, 0), (2147483647, 0, 16.0, 34359738352), (3, 0, 0.3, 0)],
)
def test_capacity_is_the_floor_of_the_double_precision_product(
    total: int, reserved: int, ratio: float, capacity: int
) -> None:
    assert Inventory(total, reserved, allocation_ratio=ratio).capacity == capacity


def test_capacities_beyond_32_bits_are_kept(store: Store) -> None:
    host = store.provider("host", VCPU=Inventory(2147483647, allocation_ratio=16.0))
    store.claim(ids.new_uuid(), {host: {"VCPU": 2147483647}})
    store.claim(ids.new_uuid(), {host: {"VCPU": 2147483647}})
    assert store.used(host) == {"VCPU": 4294967294}
    with store.database.read() as connection:
        usage = reading.project_usages(connection, "p", None)
    assert usage["INSTANCE"].resources == {"VCPU": 4294967294}


def test_replacing_keeps_use_and_refuses_to_drop_what_is_used(store: Store) -> None:
    host = store.provider("host", VCPU=8, DISK_GB=10)
    store.claim(ids.new_uuid(), {host: {"VCPU": 3}})
    store.stock(host, VCPU=16, MEMORY_MB=5)
    assert store.used(host) == {"VCPU": 3, "MEMORY_MB": 0}
    with pytest.raises(InventoryInUse):
        store.stock(host, MEMORY_MB=5)
    with pytest.raises(ProviderInUse):
        store.writer.run(lambda tx: providers.delete(tx, host))


def test_names_that_differ_in_case_are_two(store: Store) -> None:
    store.provider("host")
    store.provider("HOST")
    with pytest.raises(DuplicateName):
        store.provider("HOST")


def test_many_make_one_name_and_one_gets_it(store: Store) -> None:
    outcomes: list[str] = []

    def make() -> None:
        try:
            store.provider("same")
            outcomes.append("made")
        except DuplicateName:
            outcomes.append("refused")
        except BaseException as error:
            outcomes.append(repr(error))

    threads = [threading.Thread(target=make) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["made"] + ["refused"] * 5


def test_two_moves_that_would_close_a_loop_never_both_happen(store: Store) -> None:
    for n in range(4):
        a, b = store.provider(f"a{n}"), store.provider(f"b{n}")

        def move(child: str, parent: str, name: str) -> None:
            with suppress(KilonovaError):
                store.writer.run(lambda tx: providers.update(tx, child, name, parent=(parent,), reparenting=True))

        pairs = [(a, b, f"a{n}"), (b, a, f"b{n}")]
        threads = [threading.Thread(target=move, args=pair) for pair in pairs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        with store.database.read() as connection:
            found = [providers.show(connection, uuid) for uuid in (a, b)]
        roots = {one.root_uuid for one in found}
        assert len(roots) == 1
        assert sum(one.parent_uuid is None for one in found) == 1


def test_a_reshape_moves_everything_at_once(store: Store) -> None:
    root = store.provider("root", VCPU=4, DISK_GB=10)
    child, consumer = store.provider("child", root), ids.new_uuid()
    store.claim(consumer, {root: {"VCPU": 4, "DISK_GB": 5}})
    stocks = {root: Stock(2, {"DISK_GB": Inventory(10)}), child: Stock(0, {"VCPU": Inventory(4)})}
    wanted = [Claim(consumer, {root: {"DISK_GB": 5}, child: {"VCPU": 4}}, "p", "u", "INSTANCE", True, 1)]
    reshape.reshape(store.writer, store.keeper.current().names, stocks, wanted, Incomplete())
    assert store.used(root) == {"DISK_GB": 5}
    assert store.used(child) == {"VCPU": 4}
    store.assert_consistent()


def test_preparing_again_adds_nothing(store: Store) -> None:
    before = store.keeper.current().names
    prepare(store.database)
    assert store.keeper.current().names == before


def test_a_standard_name_that_is_new_to_the_database_is_added(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    usual = names.standard_traits()
    monkeypatch.setattr(names, "standard_traits", lambda: [*usual, "HW_SOMETHING_NEW"])
    prepare(store.database)
    assert "HW_SOMETHING_NEW" in store.keeper.current().names.trait_ids


def test_an_unknown_trait_changes_nothing(store: Store) -> None:
    host = store.provider("host")
    known = store.keeper.current().names
    with pytest.raises(BadRequest, match="NO_SUCH"):
        store.writer.run(lambda tx: traits.replace(tx, host, 0, ["HW_CPU_X86_AVX2", "NO_SUCH"], known))
    with store.database.read() as connection:
        provider = providers.show(connection, host)
        assert traits.of(connection, provider.id) == []
    assert provider.generation == 0


def test_reads_of_an_empty_store_are_empty(store: Store) -> None:
    with store.database.read() as connection:
        assert reading.consumer(connection, ids.new_uuid()) is None
        assert reading.project_usages(connection, "p", "u") == {}
        assert providers.tree_of(connection, ids.new_uuid()) == []
        assert connection.execute(sa.select(sa.func.count()).select_from(sa.text("consumers"))).scalar() == 0
