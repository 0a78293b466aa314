"""Addresses of databases: which are taken, with which driver, and what is said of the others."""

from __future__ import annotations

import pytest

from kilonova.sql.address import AddressUnusable, beside, parse
from kilonova.sql.engine import Database


@pytest.mark.parametrize(
    ("text", "driver"),
    [
        ("sqlite:////x.db", "sqlite"),
        ("postgresql://u:p@h/d", "postgresql+psycopg"),
        ("mysql://u:p@h/d", "mysql+pymysql"),
        ("mariadb://u:p@h/d", "mariadb+pymysql"),
        ("mysql+pymysql://u:p@h/d?charset=utf8mb4", "mysql+pymysql"),
    ],
)
def test_the_driver_need_not_be_named(text: str, driver: str) -> None:
    assert parse(text).drivername == driver


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "form"),
        ("nonsense", "form"),
        ("mysql://u:secret@h:port/d", "form"),
        ("oracle://u:secret@h/d", "none of"),
        ("postgresql://u:secret@h", "names no database"),
        ("postgresql+magic://u:secret@h/d", "plugin|driver"),
        ("mysql+aiomagic://u:secret@h/d", "plugin|driver"),
    ],
)
def test_what_is_no_address_of_ours_is_refused_without_its_password(text: str, words: str) -> None:
    with pytest.raises(AddressUnusable, match=words) as refused:
        Database(text)
    assert "secret" not in refused.value.text


def test_a_driver_that_is_not_there_is_named_with_what_brings_it() -> None:
    with pytest.raises(AddressUnusable, match=r"psycopg2 is not installed, which comes with kilonova\[postgresql\]"):
        Database("postgresql+psycopg2://u:p@h/d")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("mysql+pymysql://u:p%40@h/nova?charset=utf8", "mysql+pymysql://u:p%40@h/nova_cell0?charset=utf8"),
        ("postgresql+psycopg://u:p@h:1/nova.x", "postgresql+psycopg://u:p@h:1/nova.x_cell0"),
        ("sqlite:////var/lib.d/nova.db", "sqlite:////var/lib.d/nova_cell0.db"),
        ("sqlite:////var/lib.d/nova", "sqlite:////var/lib.d/nova_cell0"),
    ],
)
def test_a_database_beside_another_has_an_ending_after_its_name(text: str, expected: str) -> None:
    assert beside(text, "_cell0") == expected
