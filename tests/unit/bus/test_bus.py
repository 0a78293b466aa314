"""The conformance suite on every transport."""

from __future__ import annotations

from tests.unit.bus.conformance import Conformance, line  # noqa: F401


class TestTransports(Conformance):
    """Every test of the suite, for every transport."""
