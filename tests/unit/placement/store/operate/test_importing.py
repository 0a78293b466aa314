"""`import`: what is brought, what goes, what is refused, and that nothing is half done."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from kilonova.core import ids
from kilonova.placement.store import schema
from kilonova.placement.store.operate import importing, mirror_consumers
from kilonova.placement.store.operate.importing import ChangedHere, How, MadeHere, Outcome
from kilonova.placement.store.operate.mirror_providers import NameTakenHere
from kilonova.placement.store.operate.source import SourceUnusable
from kilonova.sql.engine import Database
from kilonova.sql.reach import DatabaseUnreachable
from tests.unit.placement.store.conftest import Store
from tests.unit.placement.store.operate.there import MOMENT, There

AGGREGATE = "aaaaaaaa-0000-4000-8000-000000000000"


@pytest.fixture
def there(tmp_path: Path) -> Iterator[There]:
    made = There(tmp_path / "there.db")
    yield made
    made.dispose()


@pytest.fixture
def database(database: Database) -> Database:
    """Without what an import before remembered: the table is none of Placement's own."""
    with database.write() as connection:
        connection.execute(sa.text("DROP TABLE IF EXISTS import_marks"))
    return database


def bring(store: Store, there: There, **how: bool) -> Outcome:
    return importing.run(store.database, there.url, How(**how), lambda *_: None)


def rows(store: Store, table: sa.Table, *columns: str) -> list[Any]:
    with store.database.read() as connection:
        return sorted(tuple(row) for row in connection.execute(sa.select(*(table.c[name] for name in columns))))


def named(store: Store) -> dict[str, Any]:
    with store.database.read() as connection:
        return {row.name: row for row in connection.execute(sa.select(schema.resource_providers))}


def a_host(there: There, name: str = "host") -> int:
    host = there.provider(name, VCPU=9, MEMORY_MB=1025)
    there.trait(host, "HW_CPU_X86_AVX2")
    there.trait(host, "CUSTOM_RED")
    there.aggregate(host, AGGREGATE)
    return host


def test_everything_is_there_afterwards_with_generations_types_owners_and_times(store: Store, there: There) -> None:
    host = a_host(there)
    numa = there.provider("numa", host, 7, CUSTOM_SLOT=4)
    there.provider("device", numa, 1)
    consumer = there.claim({host: {"VCPU": 2, "MEMORY_MB": 512}, numa: {"CUSTOM_SLOT": 1}})
    there.claim({host: {"VCPU": 1}}, kind=None)
    outcome = bring(store, there)
    assert (outcome.equal, outcome.written) == (True, True)
    here = named(store)
    assert (here["host"].generation, here["numa"].generation) == (3, 7)
    assert here["device"].parent_id == here["numa"].id
    assert {here[name].root_id for name in here} == {here["host"].id}
    assert here["host"].created_at == MOMENT
    uuid = here["host"].uuid
    assert store.used(uuid) == {"VCPU": 3, "MEMORY_MB": 512}
    assert store.used(here["numa"].uuid) == {"CUSTOM_SLOT": 1}
    with store.database.read() as connection:
        stock = {row.class_id: row for row in connection.execute(sa.select(schema.inventories))}
        capacity = stock[store.keeper.current().names.class_ids["VCPU"]].capacity
        (owner,) = connection.execute(sa.select(schema.consumers).where(schema.consumers.c.uuid == consumer)).all()
        kind = connection.execute(sa.select(schema.consumer_types.c.name)).scalar_one()
    assert capacity == 12  # (9 - 1) * 1.5
    assert (owner.project_id, owner.user_id, owner.generation, kind) == ("p1", "u1", 2, "INSTANCE")
    assert owner.consumer_type_id is not None
    assert rows(store, schema.provider_aggregates, "aggregate") == [(AGGREGATE,)]
    assert len(rows(store, schema.provider_traits, "trait_id")) == 2
    store.assert_consistent()


def test_a_second_import_brings_what_changed_and_removes_what_has_gone(store: Store, there: There) -> None:
    host, other = a_host(there), a_host(there, "other")
    stays, goes = there.claim({host: {"VCPU": 2}}), there.claim({other: {"VCPU": 3}})
    bring(store, there)
    assert bring(store, there).done == {}
    there.release(goes)
    there.remove(other)
    there.do("DELETE FROM resource_provider_traits WHERE trait_id = :t", t=there.id("traits", "CUSTOM_RED"))
    there.do("DELETE FROM traits WHERE name = 'CUSTOM_RED'")
    there.do("UPDATE allocations SET used = 5 WHERE consumer_id = :c", c=stays)
    there.do("UPDATE inventories SET total = 21 WHERE resource_class_id = :c", c=there.id("resource_classes", "VCPU"))
    there.do("DELETE FROM resource_provider_aggregates")
    new = there.provider("new", VCPU=4)
    there.allocate(stays, new, "VCPU", 1)
    outcome = bring(store, there)
    assert outcome.equal
    assert outcome.done[("providers", "removed")] == outcome.done[("providers", "made")] == 1
    here = named(store)
    assert here.keys() == {"host", "new"}
    assert store.used(here["host"].uuid)["VCPU"] == 5
    assert store.used(here["new"].uuid) == {"VCPU": 1}
    assert rows(store, schema.consumers, "uuid") == [(stays,)]
    assert rows(store, schema.provider_aggregates, "aggregate") == []
    assert "CUSTOM_RED" not in store.keeper.current().names.trait_ids
    store.assert_consistent()


def test_names_may_go_round_and_trees_be_turned(store: Store, there: There) -> None:
    one, two = there.provider("one"), there.provider("two")
    bring(store, there)
    uuids = {name: row.uuid for name, row in named(store).items()}
    there.do("UPDATE resource_providers SET name = 'x' WHERE id = :i", i=one)
    there.do("UPDATE resource_providers SET name = 'one', parent_provider_id = :p WHERE id = :i", i=two, p=one)
    there.do("UPDATE resource_providers SET name = 'two' WHERE id = :i", i=one)
    assert bring(store, there).equal
    here = named(store)
    assert {name: row.uuid for name, row in here.items()} == {"one": uuids["two"], "two": uuids["one"]}
    assert here["one"].root_id == here["one"].parent_id == here["two"].id  # the source's own root is not believed


def test_what_was_made_here_is_refused_kept_or_overwritten(store: Store, there: There) -> None:
    host = a_host(there)
    there.claim({host: {"VCPU": 1}})
    mine = store.provider("mine", VCPU=8)
    consumer = ids.new_uuid()
    store.claim(consumer, {mine: {"VCPU": 5}})
    with pytest.raises(MadeHere, match=r"1 providers .*mine"):
        bring(store, there)
    assert named(store).keys() == {"mine"}
    assert bring(store, there, merge=True).equal
    assert store.used(mine) == {"VCPU": 5}
    assert named(store).keys() == {"host", "mine"}
    store.assert_consistent()
    assert bring(store, there, overwrite=True).equal
    assert named(store).keys() == {"host"}
    assert consumer not in dict(rows(store, schema.consumers, "uuid", "id"))
    store.assert_consistent()


def test_a_provider_made_here_keeps_its_name_from_the_source(store: Store, there: There) -> None:
    a_host(there, "same")
    store.provider("same")
    with pytest.raises(NameTakenHere, match="same"):
        bring(store, there, merge=True)


def test_a_database_that_others_wrote_to_since_is_not_overwritten_unasked(store: Store, there: There) -> None:
    host = a_host(there)
    bring(store, there)
    uuid = named(store)["host"].uuid
    store.claim(ids.new_uuid(), {uuid: {"VCPU": 1}})
    with pytest.raises(ChangedHere, match="1 transactions"):
        bring(store, there)
    assert store.used(uuid)["VCPU"] == 1
    there.claim({host: {"VCPU": 4}})
    assert bring(store, there, overwrite=True).equal
    assert store.used(uuid)["VCPU"] == 4
    assert bring(store, there).done == {}


def test_a_dry_run_says_what_would_be_done_and_writes_nothing(store: Store, there: There) -> None:
    a_host(there)
    outcome = bring(store, there, dry_run=True)
    assert (outcome.equal, outcome.written, outcome.done["providers", "made"]) == (True, False, 1)
    assert named(store) == {}
    assert bring(store, there).written


def test_an_import_that_breaks_leaves_the_database_as_it_was_and_may_be_repeated(
    store: Store, there: There, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = a_host(there)
    there.claim({host: {"VCPU": 1}})

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(mirror_consumers, "remove_gone", killed)
        with pytest.raises(KeyboardInterrupt):
            bring(store, there)
    assert named(store) == {}
    assert rows(store, schema.consumers, "uuid") == []
    assert bring(store, there).written
    store.assert_consistent()


def test_a_result_that_differs_is_not_written(
    store: Store, there: There, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = a_host(there)
    there.claim({host: {"VCPU": 1}})
    monkeypatch.setattr(mirror_consumers, "bring", lambda *_: 0)
    outcome = bring(store, there)
    assert (outcome.equal, outcome.written) == (False, False)
    differ = {row.what: (row.source, row.here) for row in outcome.compared if row.source != row.here}
    assert differ == {"consumers": (1, 0), "allocations": (1, 0), "VCPU allocated": (1, 0)}
    assert named(store) == {}


def test_rows_that_refer_to_nothing_are_left_out_and_said(store: Store, there: There) -> None:
    host = a_host(there)
    consumer = there.claim({host: {"VCPU": 1}, 999: {"VCPU": 1}})
    there.allocate(consumer, host, "VCPU", 2)  # its tables allow one key twice: one row of the sum
    there.claim({})
    old = there.claim({host: {"MEMORY_MB": 8}}, record=False)
    outcome = bring(store, there)
    assert outcome.equal
    assert [note.split(" ", 1) for note in outcome.notes] == [
        ["1", "allocations of providers or classes that are not there are left out"],
        ["1", "consumers that hold nothing are left out"],
        ["1", "consumers without a record are brought as incomplete ones"],
    ]
    assert store.used(named(store)["host"].uuid) == {"VCPU": 3, "MEMORY_MB": 8}
    owners = dict(rows(store, schema.consumers, "uuid", "project_id"))
    assert owners == {consumer: "p1", old: "00000000-0000-0000-0000-000000000000"}
    assert bring(store, there).done == {}


def test_a_source_without_consumer_types_is_old_and_fine(store: Store, there: There) -> None:
    host = a_host(there)
    there.claim({host: {"VCPU": 1}}, kind=None)
    there.do("DROP TABLE consumer_types")
    there.do("ALTER TABLE consumers DROP COLUMN consumer_type_id")
    assert bring(store, there).written
    assert store.used(named(store)["host"].uuid)["VCPU"] == 1


def test_what_is_no_placement_is_refused(store: Store, there: There, tmp_path: Path) -> None:
    there.do("DROP TABLE inventories")
    with pytest.raises(SourceUnusable, match="no column resource_provider_id in a table inventories"):
        bring(store, there)
    nowhere = tmp_path / "nowhere.db"
    with pytest.raises(DatabaseUnreachable, match="unable to open"):
        importing.run(store.database, f"sqlite:///{nowhere}", How(), lambda *_: None)
    assert not nowhere.exists()


def test_a_provider_that_is_its_own_ancestor_is_refused(store: Store, there: There) -> None:
    one, two = there.provider("one"), there.provider("two")
    there.do("UPDATE resource_providers SET parent_provider_id = :p WHERE id = :i", p=one, i=two)
    there.do("UPDATE resource_providers SET parent_provider_id = :p WHERE id = :i", p=two, i=one)
    with pytest.raises(SourceUnusable, match="is its own ancestor"):
        bring(store, there)


def test_pages_and_batches_lose_nothing(store: Store, there: There, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kilonova.placement.store.operate.mirror_stock.BATCH", 2)
    hosts = [there.provider(f"host{n}", VCPU=5000) for n in range(5)]
    kept = there.claim({hosts[0]: {"VCPU": 1}})
    for table, columns in (("consumers", "generation, project_id, user_id, consumer_type_id"),
                           ("allocations", "resource_provider_id, resource_class_id, used")):  # fmt: skip
        key = {"consumers": "uuid", "allocations": "consumer_id"}[table]
        there.do(  # a page has a thousand
            f"INSERT INTO {table} ({key}, {columns}) WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n"
            f" WHERE i < 1100) SELECT 'consumer-' || i, {columns} FROM {table}, n WHERE {key} = :c",
            c=kept,
        )
    said: list[tuple[str, int, int]] = []
    outcome = importing.run(store.database, there.url, How(), lambda *words: said.append(words))
    assert outcome.equal
    assert said[:3] == [("providers", 2, 5), ("providers", 4, 5), ("providers", 5, 5)]
    assert said[-1] == ("allocations", 1101, 1101)
    assert len(rows(store, schema.consumers, "id")) == 1101
