"""A scheduler that starts: without Placement it warns and goes on, with credentials that are refused it ends."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from keystoneauth1 import exceptions

from kilonova.clients.auth import CredentialsUnusable
from kilonova.clients.rest import EndpointNotFound, RemoteForbidden, RemoteUnavailable
from kilonova.core.errors import KilonovaError
from kilonova.wiring.first_look import look


class Placement:
    """Answers, or fails as it is told."""

    def __init__(self, error: Exception | None = None) -> None:
        self._error = error

    def list_providers(self, *, uuid: str) -> list[dict[str, Any]]:
        if self._error is not None:
            raise self._error
        return []


def identity_says(status: int) -> RemoteUnavailable:
    error = RemoteUnavailable(service="identity", reason="so it is")
    error.__cause__ = exceptions.HttpError(http_status=status)
    return error


def test_a_placement_that_answers_is_not_worth_a_word(caplog: pytest.LogCaptureFixture) -> None:
    look(Placement())
    assert caplog.records == []


@pytest.mark.parametrize(
    "error",
    [RemoteUnavailable(service="placement", reason="connection refused"), EndpointNotFound(service="placement"),
     identity_says(503)],
)  # fmt: skip
def test_without_placement_a_scheduler_warns_and_starts(
    error: KilonovaError, caplog: pytest.LogCaptureFixture
) -> None:
    look(Placement(error))
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert error.text in record.getMessage()


@pytest.mark.parametrize(
    "error", [identity_says(401), identity_says(404), RemoteForbidden(service="placement", reason="no role")]
)
def test_credentials_that_are_refused_end_the_start(error: KilonovaError) -> None:
    with pytest.raises(CredentialsUnusable, match="cannot be used"):
        look(Placement(error))
