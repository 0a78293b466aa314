"""What holds for every test."""

from __future__ import annotations

import pytest
from oslo_context import context as oslo


@pytest.fixture(autouse=True)
def no_request_under_way() -> None:
    """oslo.context keeps the newest context of a thread; the one of an earlier test is not this one's."""
    if oslo.get_current() is not None:
        del oslo._request_store.context
