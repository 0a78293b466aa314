"""Expressions of users: what they match, what is none, and that none of them takes long."""

from __future__ import annotations

from pathlib import Path

import pytest
import sqlalchemy as sa

from kilonova.core import clock
from kilonova.core.regex import holds, is_regex, matcher
from kilonova.sql.engine import Database


@pytest.mark.parametrize(("pattern", "text", "found"), [
    ("b", "abc", True), ("^b", "abc", False), ("c$", "abc", True), ("a.c", "xabcx", True), (r"\d+", "a1", True),
    ("[xy]", "abc", False), ("ä", "ä", True), ("a|b", "b", True), ("A", "a", False), ("a{2}", "aa", True),
])  # fmt: skip
def test_an_expression_is_found_anywhere(pattern: str, text: str, found: bool) -> None:
    assert matcher(pattern)(text) is found
    assert holds(pattern, text) is found


@pytest.mark.parametrize("pattern", [
    "", "(", "*", "[a", "a{2,1}", r"(a)\1", "(?=a)", "((a{1,1000}){1,1000}){1,1000}", "(" * 5000,
])  # fmt: skip
def test_what_is_no_expression(pattern: str) -> None:
    assert not is_regex(pattern)


def test_null_and_no_expression_hold_nothing() -> None:
    assert not holds("a", None)
    assert not holds("(", "(")


@pytest.mark.parametrize("pattern", ["(a+)+$", "^(a|a)*$", "(.*)*(.*)*(.*)*b", "^(([a-z])+.)+[A-Z]$"])
def test_no_expression_takes_long_even_in_a_database(pattern: str, tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path / 'd.db'}")
    begin = clock.monotonic()
    with database.read() as connection:
        text = "a" * 255 + "!"
        found = connection.execute(sa.select(sa.literal(text).regexp_match(pattern))).scalar()
    database.dispose()
    assert not found
    assert clock.monotonic() - begin < 1
