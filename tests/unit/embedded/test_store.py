"""Rows, conditions and pages."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from kilonova.embedded.store import BadFilter, Duplicate, MarkerNotFound, Rows, open_tables, page
from kilonova.sql.engine import Database
from tests.databases import Shared

metadata = sa.MetaData()
THINGS = Rows(sa.Table(
    "things", metadata,
    sa.Column("id", sa.String(36), primary_key=True),
    sa.Column("number", sa.Integer),
    sa.Column("flag", sa.Boolean),
))  # fmt: skip


@pytest.fixture
def database(shared: Shared, kind: str) -> Database:
    database = shared.empty(kind, "things", metadata)
    with database.write() as connection:
        for key, number in (("a", 1), ("b", None), ("c", 2)):
            THINGS.insert(connection, {"id": key, "number": number, "flag": key == "c"})
    return database


def keys(database: Database, where: dict[str, object]) -> list[str]:
    with database.read() as connection:
        return sorted(row["id"] for row in THINGS.find(connection, where))


def test_opening_again_keeps_what_is_there(database: Database) -> None:
    open_tables(database, metadata)
    assert keys(database, {}) == ["a", "b", "c"]


def test_conditions_are_equal_one_of_and_null(database: Database) -> None:
    assert keys(database, {"number": 1}) == ["a"]
    assert keys(database, {"number": [1, 2, 3]}) == ["a", "c"]
    assert keys(database, {"number": None}) == ["b"]
    assert keys(database, {"number": []}) == []
    assert keys(database, {"number": (1, 2), "flag": True}) == ["c"]


def test_an_update_with_a_condition_is_a_compare_and_swap(database: Database) -> None:
    with database.write() as connection:
        assert THINGS.update(connection, {"id": "a", "number": 1}, {"number": 5}) == 1
        assert THINGS.update(connection, {"id": "a", "number": 1}, {"number": 6}) == 0
        assert THINGS.update(connection, "b", {"number": 7, "flag": True}) == 1
        assert THINGS.update(connection, "a", {}) == 1
        assert THINGS.get(connection, "a") == {"id": "a", "number": 5, "flag": False}
        assert THINGS.get(connection, "none") is None
        assert THINGS.delete(connection, {"flag": True}) == 2


def test_a_taken_key_is_a_duplicate_and_nothing_of_the_transaction_stays(database: Database) -> None:
    def insert(*keys: str) -> None:
        with database.write() as connection:
            for key in keys:
                THINGS.insert(connection, {"id": key})

    with pytest.raises(Duplicate):
        insert("d", "a")
    assert keys(database, {}) == ["a", "b", "c"]


def test_query_arguments_become_conditions_of_the_columns_type() -> None:
    assert THINGS.conditions({"flag": "True", "number": ["1", "2"], "other": "x"}) == {"flag": True, "number": [1, 2]}
    with pytest.raises(BadFilter):
        THINGS.conditions({"flag": "perhaps"})
    with pytest.raises(BadFilter):
        THINGS.conditions({"number": "many"})


ROWS = [{"id": key, "number": number} for key, number in (("a", 2), ("b", None), ("c", 1), ("d", 2))]


@pytest.mark.parametrize(("sort", "expected"), [
    ((("number", "asc"), ("id", "asc")), "bcad"),
    ((("number", "desc"), ("id", "asc")), "adcb"),
    ((("number", "desc"), ("id", "desc")), "dacb"),
])  # fmt: skip
def test_pages_are_sorted_by_all_keys_with_nulls_lowest(sort: list[tuple[str, str]], expected: str) -> None:
    assert "".join(row["id"] for row in page(ROWS, sort=sort)[0]) == expected


def test_pages_follow_each_other_without_gap_or_overlap() -> None:
    seen, marker, more = "", None, True
    while more:
        rows, more = page(ROWS, sort=(("id", "asc"),), limit=3, marker=marker)
        seen, marker = seen + "".join(row["id"] for row in rows), rows[-1]["id"]
    assert seen == "abcd"
    with pytest.raises(MarkerNotFound):
        page(ROWS, sort=(("id", "asc"),), marker="z")
