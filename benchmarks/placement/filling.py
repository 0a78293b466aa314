"""A world into both databases, as rows: through the APIs it would take the peer minutes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import sqlalchemy as sa

from benchmarks.placement.worlds import CUSTOM_TRAITS, NETS, WIDE_CLASS, Provider, World
from kilonova.core import clock
from kilonova.placement.store import schema
from kilonova.placement.store.prepare import prepare
from kilonova.sql.engine import Database

_TREES = 500  # whose rows are written at once

Rows = dict[str, list[dict[str, Any]]]


def fill_ours(url: str, world: World) -> int:
    """Make the tables, and the rows in them; how many providers."""
    database = Database(url)
    prepare(database)
    tables = {table.name: table for table in schema.metadata.sorted_tables}
    now = clock.utcnow()
    stamps = {"created_at": now, "updated_at": now}
    with database.write() as connection:
        connection.execute(sa.insert(schema.resource_classes), [{"name": WIDE_CLASS, **stamps}])
        connection.execute(sa.insert(schema.traits), [{"name": name, **stamps} for name in (*CUSTOM_TRAITS, *NETS)])
        classes, traits = _ids(connection, schema.resource_classes), _ids(connection, schema.traits)
        count = 0
        for trees in _batches(world):
            rows: Rows = {name: [] for name in ("resource_providers", "inventories", "provider_traits",
                                                "provider_aggregates")}  # fmt: skip
            for tree in trees:
                count = _our_rows(rows, tree, count, classes, traits, stamps)
            _write(connection, tables, rows)
    _finish(database.url, tables, ("resource_providers",))
    database.dispose()
    return count


def _our_rows(
    rows: Rows, tree: list[Provider], count: int, classes: dict[str, int], traits: dict[str, int],
    stamps: dict[str, Any],
) -> int:  # fmt: skip
    known: dict[str | None, int | None] = {None: None}
    for one in tree:
        count += 1
        id_ = known[one.uuid] = count
        root = known[tree[0].uuid]
        rows["resource_providers"].append({
            "id": id_, "uuid": one.uuid, "name": one.name, "generation": 3, "root_id": root,
            "parent_id": known[one.parent], **stamps,
        })  # fmt: skip
        rows["inventories"] += [
            {"provider_id": id_, "class_id": classes[name], "total": stock.total, "reserved": stock.reserved,
             "min_unit": 1, "max_unit": stock.most, "step_size": 1, "allocation_ratio": stock.ratio,
             "capacity": stock.capacity, "used": 0, **stamps}
            for name, stock in one.stock.items()
        ]  # fmt: skip
        rows["provider_traits"] += [{"provider_id": id_, "trait_id": traits[name]} for name in one.traits]
        rows["provider_aggregates"] += [{"provider_id": id_, "aggregate": name} for name in one.aggregates]
    return count


def fill_peer(url: str, world: World) -> int:
    """Rows in the tables that its own command made, with the names that it made itself (see `services.peer`)."""
    engine = sa.create_engine(url)
    tables = sa.MetaData()
    tables.reflect(engine)
    found = tables.tables
    stamps = {"created_at": clock.utcnow(), "updated_at": clock.utcnow()}
    aggregates = {name: n for n, name in enumerate([*world.zones, *world.racks, *world.groups], 1)}
    with engine.begin() as connection:
        connection.execute(sa.insert(found["placement_aggregates"]),
                           [{"id": n, "uuid": name, **stamps} for name, n in aggregates.items()])  # fmt: skip
        ids = _ids(connection, found["resource_classes"]), _ids(connection, found["traits"]), aggregates
        count = 0
        for trees in _batches(world):
            rows: Rows = {name: [] for name in ("resource_providers", "inventories", "resource_provider_traits",
                                                "resource_provider_aggregates")}  # fmt: skip
            for tree in trees:
                count = _peer_rows(rows, tree, count, *ids, stamps)
            _write(connection, found, rows)
    _finish(engine.url, found, ("resource_providers", "placement_aggregates"))
    engine.dispose()
    return count


def _peer_rows(
    rows: Rows, tree: list[Provider], count: int, classes: dict[str, int], traits: dict[str, int],
    aggregates: dict[str, int], stamps: dict[str, Any],
) -> int:  # fmt: skip
    known: dict[str | None, int | None] = {None: None}
    for one in tree:
        count += 1
        id_ = known[one.uuid] = count
        rows["resource_providers"].append({
            "id": id_, "uuid": one.uuid, "name": one.name, "generation": 3, "root_provider_id": known[tree[0].uuid],
            "parent_provider_id": known[one.parent], **stamps,
        })  # fmt: skip
        rows["inventories"] += [
            {"resource_provider_id": id_, "resource_class_id": classes[name], "total": stock.total,
             "reserved": stock.reserved, "min_unit": 1, "max_unit": stock.most, "step_size": 1,
             "allocation_ratio": stock.ratio, **stamps}
            for name, stock in one.stock.items()
        ]  # fmt: skip
        made = {"resource_provider_id": id_, **stamps}
        rows["resource_provider_traits"] += [{"trait_id": traits[name], **made} for name in one.traits]
        rows["resource_provider_aggregates"] += [{"aggregate_id": aggregates[name], **made} for name in one.aggregates]
    return count


def _batches(world: World) -> Iterator[list[list[Provider]]]:
    batch: list[list[Provider]] = []
    for tree in world.trees():
        batch.append(tree)
        if len(batch) == _TREES:
            yield batch
            batch = []
    if batch:
        yield batch


def _ids(connection: sa.Connection, table: sa.Table) -> dict[str, int]:
    return {row.name: row.id for row in connection.execute(sa.select(table.c.name, table.c.id))}


def _write(connection: sa.Connection, tables: Any, rows: Rows) -> None:
    for name, some in rows.items():
        if some:
            connection.execute(sa.insert(tables[name]), some)


def _finish(url: sa.URL, tables: Iterable[str], numbered: tuple[str, ...]) -> None:
    """What a database of this size would have anyway: statistics, and counters that go on behind the last id."""
    engine = sa.create_engine(url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        if engine.dialect.name == "postgresql":
            for table in numbered:
                connection.execute(sa.text(
                    f"SELECT setval(pg_get_serial_sequence('{table}', 'id'), (SELECT max(id) FROM {table}))"
                ))  # fmt: skip
        every = ", ".join(tables)
        words = {"mysql": f"ANALYZE TABLE {every}", "mariadb": f"ANALYZE TABLE {every}", "postgresql": "VACUUM ANALYZE"}
        connection.execute(sa.text(words.get(engine.dialect.name, "ANALYZE")))
    engine.dispose()
