"""A placement store on every kind of database that is at hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pytest
import sqlalchemy as sa

from kilonova.core import ids
from kilonova.placement.candidates import arrange
from kilonova.placement.candidates import snapshot as columns
from kilonova.placement.store import claims, inventories, loading, providers
from kilonova.placement.store.claims import Claim, Incomplete
from kilonova.placement.store.inventories import Inventory
from kilonova.placement.store.keeper import Keeper
from kilonova.placement.store.prepare import prepare
from kilonova.placement.store.schema import allocations, metadata
from kilonova.placement.store.schema import inventories as inventory_table
from kilonova.placement.store.transactions import Writer
from kilonova.sql.engine import Database
from tests.databases import Shared

INCOMPLETE = Incomplete()


@dataclass
class Store:
    """One process's view of a database."""

    database: Database
    writer: Writer
    keeper: Keeper

    @classmethod
    def of(cls, database: Database) -> Store:
        writer = Writer(database)
        return cls(database, writer, Keeper(writer))

    def provider(self, name: str, parent: str | None = None, **stock: int | Inventory) -> str:
        uuid = ids.new_uuid()
        self.writer.run(lambda tx: providers.create(tx, uuid, name, parent))
        if stock:
            self.stock(uuid, **stock)
        return uuid

    def stock(self, uuid: str, **stock: int | Inventory) -> None:
        wanted = {name: one if isinstance(one, Inventory) else Inventory(one) for name, one in stock.items()}
        names = self.keeper.current().names
        self.writer.run(lambda tx: inventories.replace(tx, uuid, None, wanted, names))

    def claim(
        self, consumer: str, amounts: Mapping[str, Mapping[str, int]], generation: int | None = None
    ) -> None:
        self.write(Claim(consumer, amounts, "p", "u", "INSTANCE", True, generation))

    def write(self, *wanted: Claim) -> None:
        names = self.keeper.latest.names
        claims.write(self.writer, names, wanted, known={}, incomplete=INCOMPLETE)

    def used(self, uuid: str) -> dict[str, int]:
        view = self.keeper.current()
        row = view.snapshot.row_of_uuid[uuid]
        shown = view.snapshot.shown[row]
        assert shown is not None
        return {
            view.names.class_names[id_]: columns.provider_numbers(view.snapshot, row, id_)[1] for id_ in shown.classes
        }

    def assert_consistent(self) -> None:
        """`used` is the sum of allocations everywhere, nowhere above capacity; the snapshot equals the store."""
        with self.database.read() as connection:
            sums = {
                (row[0], row[1]): int(row[2])
                for row in connection.execute(
                    sa.select(allocations.c.provider_id, allocations.c.class_id, sa.func.sum(allocations.c.used))
                    .group_by(allocations.c.provider_id, allocations.c.class_id)
                )
            }  # fmt: skip
            for row in connection.execute(sa.select(inventory_table)):
                assert row.used == sums.pop((row.provider_id, row.class_id), 0)
                assert row.used <= row.capacity
            assert not sums
            fresh = arrange.build(loading.everything(connection))
        held = self.keeper.current().snapshot
        assert columns.checksum(held) == columns.checksum(fresh)
        for class_id, column in fresh.columns.items():
            mine = held.columns[class_id]
            left = {held.shown[row].id: n for row, n in zip(mine.rows.tolist(), mine.room.tolist(), strict=True)}  # type: ignore[union-attr]
            right = {fresh.shown[row].id: n for row, n in zip(column.rows.tolist(), column.room.tolist(), strict=True)}  # type: ignore[union-attr]
            assert left == right


@pytest.fixture
def database(shared: Shared, kind: str) -> Database:
    """A database as Placement makes it."""
    return shared.empty(kind, "placement", metadata, prepare)


@pytest.fixture
def store(database: Database) -> Store:
    return Store.of(database)
