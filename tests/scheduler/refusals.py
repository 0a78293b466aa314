"""What is said when there is no host: little to everybody, the whole to those who may know."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from kilonova.core.scheduling import NoValidHost


@contextmanager
def no_valid_host(explanation: str) -> Iterator[None]:
    """The block ends in NoValidHost, which says no more than that, and whose short form matches the pattern."""
    with pytest.raises(NoValidHost, match=r"^No valid host was found\. There are not enough hosts available\.$") as got:
        yield
    assert re.search(explanation, got.value.details["explanation"]), got.value.details
