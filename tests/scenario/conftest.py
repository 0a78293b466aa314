"""Stories whose cloud writes what they are about run on each kind of database that is at hand: they take `places`."""

from __future__ import annotations

import pytest

from tests.databases import KINDS, Places, Shared


@pytest.fixture(scope="module", params=KINDS)
def places(request: pytest.FixtureRequest, shared: Shared) -> Places:
    """Where a cloud of this module may have its databases; one at a time."""
    return shared.places(str(request.param))
