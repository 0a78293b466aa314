"""/decisions: what the scheduler decided and why, newest first, or one by number, server or request."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from kilonova.api.scheduler.policy import LIST, SHOW
from kilonova.api.scheduler.story import fate, story
from kilonova.compute import decisions
from kilonova.compute.decisions import DecisionFilter
from kilonova.core import clock, ids
from kilonova.core.decision import Outcome
from kilonova.http.fields import UUID, Enum, Param, Query, Str
from kilonova.http.op import Op, Request
from kilonova.http.paging import LIMIT, MARKER, next_link, page_size, with_links
from kilonova.http.views import Out, View

_TEXT = Str(1, 255)
_TIME = Str(format="date-time")

INDEX = Query(
    (
        LIMIT, MARKER, Param("server", UUID), Param("request_id", _TEXT), Param("project_id", _TEXT),
        Param("outcome", Enum(*(outcome.value for outcome in Outcome))), Param("host", _TEXT), Param("since", _TIME),
        Param("before", _TIME),
    ),
    strict=True,
)  # fmt: skip
ONE = Query((Param("host", _TEXT),), strict=True)

LISTED = View(
    "decision",
    Out("id", lambda row, req: row.id),
    Out("at", lambda row, req: clock.iso_z(row.created_at)),
    Out("request_id", lambda row, req: row.request_id),
    Out("project_id", lambda row, req: row.project_id),
    Out("scheduler", lambda row, req: row.scheduler),
    Out("outcome", lambda row, req: row.outcome),
    Out("flavor", lambda row, req: row.flavor),
    Out("servers", lambda row, req: row.server_count),
    Out("host", lambda row, req: row.host or None),
    Out("milliseconds", lambda row, req: round(row.milliseconds, 3)),
)


def index(req: Request) -> dict[str, Any]:
    """The newest decisions, in pages."""
    size = page_size(req, req.world.settings.max_limit)
    found = decisions.page(req.world, _wanted(req.query), size, req.query.get("marker"))
    document = {"decisions": LISTED.many(found, req)}
    marker = str(found[-1].id) if found else ""
    return with_links(document, "decisions_links", next_link(req, "decisions", len(found), size, marker))


def _wanted(query: dict[str, Any]) -> DecisionFilter:
    server = query.get("server")
    return DecisionFilter(
        server=ids.canonical_uuid(server) if server else None, request_id=query.get("request_id"),
        project_id=query.get("project_id"), outcome=query.get("outcome"), host=query.get("host"),
        since=_moment(query.get("since")), before=_moment(query.get("before")),
    )  # fmt: skip


def _moment(text: str | None) -> datetime | None:
    """A time as the database has it: UTC, without saying so."""
    if text is None:
        return None
    found = datetime.fromisoformat(text)
    return found if found.tzinfo is None else found.astimezone(UTC).replace(tzinfo=None)


def show(req: Request) -> dict[str, Any]:
    """The whole story of one decision; with `host`, the fate of that host."""
    found = decisions.find(req.world, req.path["reference"])
    document = {"id": found.number, **story(found.decision), "older": list(found.older)}
    if "host" in req.query:
        document["fate"] = fate(found.decision, req.query["host"])
    return {"decision": document}


OPS: tuple[Op, ...] = (
    Op("GET", "/decisions", index, policy=LIST, query=INDEX, errors=(400,)),
    Op("GET", "/decisions/{reference}", show, policy=SHOW, policy_first=True, query=ONE, errors=(404,)),
)
