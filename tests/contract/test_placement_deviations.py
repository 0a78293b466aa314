"""Where two things are wrong with a request and the release says the other one first (`placement_deviations.json`)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.http.placement.conftest import Client, client

__all__ = ["client"]

ROWS: list[dict[str, str]] = json.loads(Path(__file__).with_name("placement_deviations.json").read_text())
NOBODY = {"roles": ["member"], "project_id": "p", "user_id": "u"}
AGGREGATES = "/resource_providers/99999999-9999-4999-8999-999999999999/aggregates"
UNTYPED: dict[str, Any] = {"body": b"{}", "CONTENT_TYPE": None}
REQUESTS: dict[str, tuple[tuple[int, str | None, dict[str, Any] | None, str, dict[str, Any]], ...]] = {
    "every operation": ((404, "1.39", NOBODY, "GET /nowhere", UNTYPED), (405, "1.39", NOBODY, "PUT /traits", UNTYPED)),
    "PUT /": ((401, "1.39", None, "PUT /", {}),),
    "DELETE /resource_providers/{uuid}/inventories": (
        (403, "1.4", NOBODY, f"DELETE {AGGREGATES.replace('aggregates', 'inventories')}", {}),
    ),
    "PUT /resource_providers/{uuid}/aggregates": (
        (404, "1.0", NOBODY, f"PUT {AGGREGATES}", {"body": b"x", "CONTENT_TYPE": "text/plain"}),
    ),
    "GET /usages": ((400, "1.39", NOBODY, "GET /usages", {}),),
}
"""What is kept of each row, as (status, version, who asks, request, more of it)."""


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["n"])
def test_what_is_kept_is_what_is_served(row: dict[str, str], client: Client) -> None:
    for status, version, who, request, more in REQUESTS[row["n"]]:
        method, path = request.split()
        asking = Client(client.app, version, who)
        assert asking(method, path, **more).status == status
        assert str(status) in row["keep"]
