"""Two addresses of one virtual host are one place, however they are written."""

from __future__ import annotations

import pytest

from kilonova.bus.address import place


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("rabbit://u:p@host:5672/v", "rabbit://other:secret@host/v"),
        ("rabbit://u:p@a:5672,u:p@b:5673/v", "rabbit://u:p@b:5673,u:p@a/v"),
        ("rabbit://u:p@Host/v?ssl=1", "rabbit://host/v"),
        ("rabbit://u:p@[::1]/v", "rabbit://[::1]:5672/v"),
    ],
)
def test_the_same_place(one: str, other: str) -> None:
    assert place(one) == place(other)


@pytest.mark.parametrize("other", ["rabbit://u:p@a/w", "rabbit://u:p@b/v", "rabbit://u:p@a:5673/v", "rabbit://u:p@a"])
def test_another_place(other: str) -> None:
    assert place("rabbit://u:p@a/v") != place(other)
