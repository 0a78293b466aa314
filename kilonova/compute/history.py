"""What was done to a server: its instance actions with their events."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from kilonova.compute.lookup import Found
from kilonova.compute.world import World
from kilonova.core.errors import Invalid, NotFound
from kilonova.db.queries import actions


class ActionNotFound(NotFound):
    """No request of that id did anything to the server."""

    code, message = "action_not_found", "Action {request} on instance {server} not found"


class ActionMarkerNotFound(Invalid):
    """The marker is no request id of the server's actions."""

    code, message = "marker_not_found", "Marker {marker} could not be found."


def every(
    world: World, found: Found, *, since: datetime | None = None, before: datetime | None = None,
    marker: str | None = None, limit: int | None = None,
) -> list[Any]:  # fmt: skip
    """The actions of a server, newest first; those touched in a span of time, after a marker."""
    if found.cell is None:
        return []
    rows = actions.every(world.cells.database(found.cell), found.server.uuid)
    if marker is not None:
        at = next((index for index, row in enumerate(rows) if row.request_id == marker), None)
        if at is None:
            raise ActionMarkerNotFound(marker=marker)
        rows = rows[at + 1 :]
    return actions.between(rows, since, before)[:limit]


def one(world: World, found: Found, request_id: str) -> tuple[Any, list[Any]]:
    """(action, its events, newest first). ActionNotFound."""
    if found.cell is not None:
        row = actions.one(world.cells.database(found.cell), found.server.uuid, request_id)
        if row is not None:
            return row
    raise ActionNotFound(request=request_id, server=found.server.uuid)
