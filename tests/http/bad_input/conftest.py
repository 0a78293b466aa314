"""A cloud that is only there to be sent nonsense. Whatever a test sends, nothing may end as an error in the log."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from tests.http.compute.conftest import admin, alt, cloud, demo, transport

__all__ = ["admin", "alt", "cloud", "demo", "transport"]


class Errors(logging.Handler):
    """Keeps what is logged as an error."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(f"{record.name}: {record.getMessage()}")


@pytest.fixture(autouse=True)
def no_errors_in_the_log(cloud: object) -> Iterator[None]:
    errors = Errors()
    logging.getLogger().addHandler(errors)
    yield
    logging.getLogger().removeHandler(errors)
    assert errors.texts == []
