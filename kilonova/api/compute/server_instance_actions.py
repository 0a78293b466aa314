"""/servers/{id}/os-instance-actions: what was done to a server, by whom, and how it went."""

from __future__ import annotations

import hashlib
from typing import Any

from kilonova.compute import history, lookup
from kilonova.compute.listing import moment
from kilonova.compute.lookup import Found
from kilonova.core import clock
from kilonova.core.errors import Invalid
from kilonova.http import paging
from kilonova.http.fields import Param, Query, Str
from kilonova.http.op import Op, Request
from kilonova.http.versions import Since
from kilonova.http.views import Out, View

_RULE = "os_compute_api:os-instance-actions:"
_EVENTS = _RULE + "events"
_DETAILS = _RULE + "events:details"

_TIME = Str(format="date-time")
LIST = Query(
    (
        Param("limit", paging.LIMIT.type, once=True, since="2.58"), Param("marker", once=True, since="2.58"),
        Param("changes-since", _TIME, once=True, since="2.58"),
        Param("changes-before", _TIME, once=True, since="2.66"),
    ),
    strict="2.58",
)  # fmt: skip
ONE = Query(strict="2.102")

ACTION = View(
    "instance_action",
    Out("action", lambda row, req: row.action),
    Out("instance_uuid", lambda row, req: row.instance_uuid),
    Out("request_id", lambda row, req: row.request_id),
    Out("user_id", lambda row, req: row.user_id),
    Out("project_id", lambda row, req: row.project_id),
    Out("start_time", lambda row, req: clock.raw(row.start_time)),
    Out("message", lambda row, req: row.message),
    Out("updated_at", lambda row, req: clock.raw(row.updated_at), since="2.58"),
)


def _host_id(event: Any, req: Request) -> str:
    if not event.host:
        return ""
    return hashlib.sha224((req.target.server.project_id + event.host).encode()).hexdigest()


EVENT = View(
    "instance_action_event",
    Out("event", lambda row, req: row.event),
    Out("start_time", lambda row, req: clock.raw(row.start_time)),
    Out("finish_time", lambda row, req: clock.raw(row.finish_time)),
    Out("result", lambda row, req: row.result),
    Out("traceback", lambda row, req: row.traceback, gate=_EVENTS),
    Out("hostId", _host_id, since="2.62"),
    Out("host", lambda row, req: row.host, since="2.62", gate=_EVENTS),
    Out("details", lambda row, req: row.details, since="2.84", gate=_DETAILS),
)


class TimesReversed(Invalid):
    """changes-since after changes-before."""

    code, message = "times_reversed", "The value of changes-since must be less than or equal to changes-before."


def server_of(req: Request) -> Found:
    """The server in the path; deleted ones too from 2.21 on."""
    return lookup.find(req.world, req.ctx, req.path["server_id"], deleted=req.flag("of_deleted"))


def index(req: Request) -> dict[str, Any]:
    """The actions, newest first."""
    query = req.query
    size = paging.page_size(req, req.world.settings.max_limit)
    since = moment("changes-since", query["changes-since"]) if "changes-since" in query else None
    before = moment("changes-before", query["changes-before"]) if "changes-before" in query else None
    if since and before and since > before:
        raise TimesReversed
    rows = history.every(req.world, req.target, since=since, before=before, marker=query.get("marker"), limit=size)
    document = {"instanceActions": ACTION.many(rows, req, "list")}
    if not req.flag("paged"):
        return document
    path = f"servers/{req.target.server.uuid}/os-instance-actions"
    link = paging.next_link(req, path, len(rows), size, rows[-1].request_id if rows else "")
    return paging.with_links(document, "links", link)


def show(req: Request) -> dict[str, Any]:
    """One action with its events."""
    action, events = history.one(req.world, req.target, req.path["id"])
    document = ACTION.one(action, req, "show", req.target)
    if req.flag("events_for_all") or req.allowed(_EVENTS, req.target):
        document["events"] = [EVENT.one(event, req, "show", req.target) for event in events]
    return {"instanceAction": document}


_FLAGS = {"of_deleted": "2.21", "paged": "2.58", "events_for_all": "2.51"}

OPS: tuple[Op, ...] = (
    Op(
        "GET", "/servers/{server_id}/os-instance-actions", index, policy=_RULE + "list", target=server_of,
        query=LIST, errors=Since((404,), ("2.58", (400, 404))), flags=_FLAGS,
    ),
    Op(
        "GET", "/servers/{server_id}/os-instance-actions/{id}", show, policy=_RULE + "show",
        also=(_EVENTS, _DETAILS), target=server_of, query=ONE, errors=(404,), flags=_FLAGS,
    ),
)  # fmt: skip
