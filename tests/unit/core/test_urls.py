"""Passwords in addresses are not shown; users and hosts are."""

from __future__ import annotations

import pytest

from kilonova.core.urls import masked_database, masked_transport


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("sqlite:////var/lib/x.db", "sqlite:////var/lib/x.db"),
        ("mysql+pymysql://nova:pa,ss/w0rd@db:3306/nova", "mysql+pymysql://nova:****@db:3306/nova"),
        ("postgresql://db/nova?user=nova&password=secret&x=1", "postgresql://db/nova?user=nova&password=****&x=1"),
        ("postgresql://nova@db/nova", "postgresql://nova@db/nova"),
        ("postgresql://:secret@db/nova", "postgresql://:****@db/nova"),
        ("not an address", "not an address"),
    ],
)
def test_a_database_address_is_shown_without_its_password(url: str, shown: str) -> None:
    assert masked_database(url) == shown


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("none:///", "none:///"),
        ("rabbit://a:b@h/v", "rabbit://a:****@h/v"),
        ("rabbit://a:p@ss@h:5672,c:d@[::1]:5672/v", "rabbit://a:****@h:5672,c:****@[::1]:5672/v"),
        ("rabbit://h:5672/v?ssl=1", "rabbit://h:5672/v?ssl=1"),
        ("rabbit://a@h", "rabbit://a@h"),
        ("rubbish", "rubbish"),
    ],
)
def test_a_brokers_address_is_shown_without_its_passwords(url: str, shown: str) -> None:
    assert masked_transport(url) == shown
