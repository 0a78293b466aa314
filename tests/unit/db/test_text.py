"""Text is the same to every database: what differs in anything is different, and all of Unicode is kept."""

from __future__ import annotations

import msgspec

from kilonova.core import clock
from kilonova.core.server import Server, ServerExtra
from kilonova.db.queries import flavors, keypairs, server_lists, servers
from kilonova.db.queries.server_lists import Order, ServerFilter
from kilonova.sql.engine import Database
from tests.unit.db.rows import server

LIKE_EACH_OTHER = ["a", "A", "á", "a ", "😀", "😁", "ß", "ss"]


def add(cell: Database, *rows: Server, tags: tuple[str, ...] = ()) -> None:
    with cell.write() as connection:
        for row in rows:
            servers.insert(connection, row, ServerExtra(), tags)


def names(cell: Database, wanted: ServerFilter, *keys: tuple[str, bool], after: Server | None = None) -> list[str]:
    order = Order(keys or (("display_name", False),))
    return [row.display_name for row in server_lists.page(cell, wanted, order, 100, after)]


def test_names_that_are_like_each_other_are_different_names(api: Database) -> None:
    row = {"user_id": "u", "type": "ssh", "fingerprint": "f", "public_key": "k"}
    for name in LIKE_EACH_OTHER:
        with api.write() as connection:
            keypairs.insert(connection, row | {"name": name})
    assert sorted(row.name for row in keypairs.page(api, "u", 100)) == sorted(LIKE_EACH_OTHER)
    found = [keypairs.get(api, "u", name) for name in LIKE_EACH_OTHER]
    assert [row and row.name for row in found] == LIKE_EACH_OTHER
    with api.write() as connection:
        assert keypairs.delete(connection, "u", "A")
    assert keypairs.get(api, "u", "a") is not None


def test_tags_that_are_like_each_other_are_different_tags(cell: Database) -> None:
    made = server("s")
    add(cell, made, tags=tuple(LIKE_EACH_OTHER))
    assert sorted(servers.tags_of(cell, [made.uuid])[made.uuid]) == sorted(LIKE_EACH_OTHER)
    with cell.write() as connection:
        servers.replace_tags(connection, made.uuid, ["a"])
    for name in LIKE_EACH_OTHER:
        assert names(cell, ServerFilter(tags=[name])) == (["s"] if name == "a" else [])
        assert names(cell, ServerFilter(not_tags=[name])) == ([] if name == "a" else ["s"])


def test_an_expression_holds_in_its_own_case_only(api: Database, cell: Database) -> None:
    add(cell, server("web-1"), server("WEB-2"), server("9"))
    assert names(cell, ServerFilter(regex={"display_name": "^web"})) == ["web-1"]
    assert sorted(names(cell, ServerFilter(regex={"display_name": "[12]$"}))) == ["WEB-2", "web-1"]
    assert names(cell, ServerFilter(regex={"vcpus": "^1$", "display_name": "9"})) == ["9"]
    with api.write() as connection:
        for name in ("small", "SMALL"):
            flavors.insert(connection, {"name": name, "flavorid": name, "memory_mb": 1, "vcpus": 1, "root_gb": 1})
    assert [row.name for row in flavors.page(api, flavors.FlavorFilter(name="^s"), 10, None)] == ["small"]


def test_servers_without_a_value_come_first_ascending_and_last_descending_also_over_pages(cell: Database) -> None:
    rows = [server("a", host="z"), server("b", host=None), server("c", host="y"), server("d", host=None)]
    add(cell, *rows)
    ascending, descending = ["b", "d", "c", "a"], ["a", "c", "b", "d"]
    tie = ("display_name", False)
    assert names(cell, ServerFilter(), ("host", False), tie) == ascending
    assert names(cell, ServerFilter(), ("host", True), tie) == descending
    for expected, down in ((ascending, False), (descending, True)):
        for at, marker in enumerate(expected):
            (row,) = (row for row in rows if row.display_name == marker)
            assert names(cell, ServerFilter(), ("host", down), tie, after=row) == expected[at + 1 :]


def test_what_a_server_is_comes_back_to_the_microsecond_and_the_emoji(cell: Database) -> None:
    made = server(
        "😀" * 255, display_description="é", metadata={"😀": "á", "k": "x" * 255}, config_drive=True, locked_by="owner",
        launched_at=clock.utcnow(), flavor={"name": "f", "extra_specs": {}}, network_info=[{"id": 1, "on": True}],
        system_metadata={"image_x": "y"}, attachments=[{"id": "v", "delete_on_termination": False}],
    )  # fmt: skip
    add(cell, made)
    found = servers.get(cell, made.uuid)
    assert found is not None
    assert found == msgspec.structs.replace(made, id=found.id)


def test_user_data_and_personality_of_the_greatest_size_are_kept(cell: Database) -> None:
    made, extra = server("s"), ServerExtra(user_data="u" * 65535, personality=[{"path": "p", "contents": "c" * 90_000}])
    with cell.write() as connection:
        servers.insert(connection, made, extra)
    assert servers.extras(cell, [made.uuid]) == {made.uuid: extra}
