"""A cloud that is only there to be sent nonsense. Whatever a test sends, nothing may end as an error in the log."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from tests.http.compute.conftest import admin, alt, cloud, demo, transport

__all__ = ["admin", "alt", "cloud", "demo", "transport"]


NO_HOST = "Failed to schedule instances "
"""How the line begins that tells the operator that there was no host: no fault of ours."""


class Errors(logging.Handler):
    """Keeps what is logged as an error, but for `NO_HOST`."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if not text.startswith(NO_HOST):
            self.texts.append(f"{record.name}: {text}")


@pytest.fixture(autouse=True)
def no_errors_in_the_log(cloud: object) -> Iterator[None]:
    errors = Errors()
    logging.getLogger().addHandler(errors)
    yield
    logging.getLogger().removeHandler(errors)
    assert errors.texts == []
