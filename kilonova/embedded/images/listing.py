"""The list of images: what a caller sees of it, filters, order, pages."""

from __future__ import annotations

import operator
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

from sqlalchemy.engine import Connection

from kilonova.core.context import Context
from kilonova.core.errors import Invalid
from kilonova.embedded.images.records import VISIBILITIES, is_admin, view
from kilonova.embedded.images.tables import IMAGES, MEMBERS
from kilonova.embedded.store import Row, page
from kilonova.http.op import Request

_DEFAULT_LIMIT, _MAX_LIMIT = 25, 1000
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "gt": operator.gt, "gte": operator.ge, "lt": operator.lt, "lte": operator.le, "eq": operator.eq,
    "neq": operator.ne,
}  # fmt: skip
_PAGING = ("limit", "marker", "sort", "sort_key", "sort_dir", "member_status", "visibility", "os_hidden", "tag")
_SORTABLE = (
    "name", "status", "visibility", "owner", "container_format", "disk_format", "size", "min_disk", "min_ram", "id",
    "created_at", "updated_at",
)  # fmt: skip


class BadQuery(Invalid):
    code, message = "bad_query", "{value!r} is not a valid value of {name}."


def list_images(req: Request) -> dict[str, Any]:
    """One page of the images that the caller sees and the query asks for."""
    query = req.query
    with req.world.database.read() as connection:
        rows = _visible(connection, req.ctx, query)
        for name, values in query.items():
            if name not in _PAGING:
                rows = [row for row in rows if all(_matches(row, name, value) for value in values)]
    limit = _limit(query)
    shown, more = page(rows, sort=_sort(query), limit=limit, marker=query.get("marker", [None])[-1])
    rest = [(name, value) for name, values in query.items() if name != "marker" for value in values]
    answer = {"images": [view(req, row) for row in shown], "first": _link(rest), "schema": "/v2/schemas/images"}
    if more and shown:
        answer["next"] = _link([*rest, ("marker", shown[-1]["id"])])
    return answer


def _link(query: list[tuple[str, str]]) -> str:
    return "/v2/images" + (f"?{urlencode(query)}" if query else "")


def _limit(query: dict[str, list[str]]) -> int:
    text = query.get("limit", [str(_DEFAULT_LIMIT)])[-1]
    if not text.isdecimal():
        raise BadQuery(name="limit", value=text)
    return min(int(text), _MAX_LIMIT)


def _sort(query: dict[str, list[str]]) -> list[tuple[str, str]]:
    if "sort" in query:
        pairs = [(part.partition(":")[0], part.partition(":")[2] or "desc") for part in query["sort"][-1].split(",")]
    else:
        keys, directions = query.get("sort_key", ["created_at"]), query.get("sort_dir", ["desc"])
        if len(directions) not in (1, len(keys)):
            raise BadQuery(name="sort_dir", value=",".join(directions))
        pairs = list(zip(keys, directions * len(keys) if len(directions) == 1 else directions, strict=False))
    for name, direction in pairs:
        if name not in _SORTABLE or direction not in ("asc", "desc"):
            raise BadQuery(name="sort", value=f"{name}:{direction}")
    return [*pairs, *((name, "desc") for name in ("created_at", "id") if name not in dict(pairs))]


def _visible(connection: Connection, ctx: Context, query: dict[str, list[str]]) -> list[Row]:
    """The images of the asked visibility: by default all that is one's own, public or shared and accepted."""
    wanted = query.get("visibility", ["" if not is_admin(ctx) else "all"])[-1]
    if wanted not in ("", "all", *VISIBILITIES):
        raise BadQuery(name="visibility", value=wanted)
    hidden = query.get("os_hidden", ["false"])[-1].lower()
    if hidden not in ("true", "false"):
        raise BadQuery(name="os_hidden", value=hidden)
    status = query.get("member_status", ["accepted"])[-1]
    if status not in ("accepted", "pending", "rejected", "all"):
        raise BadQuery(name="member_status", value=status)
    where: dict[str, Any] = {"member_id": ctx.project_id or ""} | ({} if status == "all" else {"status": status})
    shared = {member["image_id"] for member in MEMBERS.find(connection, where)}

    def sees(row: Row) -> bool:
        if is_admin(ctx) or (row["owner"] is not None and row["owner"] == ctx.project_id):
            return True
        if row["visibility"] == "community":
            return wanted in ("community", "all")
        return row["visibility"] == "public" or (row["visibility"] == "shared" and row["id"] in shared)

    where = {"os_hidden": hidden == "true"} | ({"visibility": wanted} if wanted in VISIBILITIES else {})
    tags = set(query.get("tag", ()))
    return [row for row in IMAGES.find(connection, where) if sees(row) and tags <= set(row["tags"])]


def _matches(row: Row, name: str, text: str) -> bool:
    if name in ("size_min", "size_max"):
        if not text.isdecimal():
            raise BadQuery(name=name, value=text)
        size = row["size"] or 0
        return size >= int(text) if name == "size_min" else size <= int(text)
    if name in ("created_at", "updated_at"):
        return _compare_time(row[name], name, text)
    found = row[name] if name in row and name != "properties" else row["properties"].get(name)
    if isinstance(found, bool):
        return str(found).lower() == text.lower()
    if name in ("id", "name", "status", "container_format", "disk_format") and text.startswith("in:"):
        return str(found) in [part.strip('"') for part in text[3:].split(",")]
    return found is not None and str(found) == text.removeprefix("eq:")


def _compare_time(found: datetime, name: str, text: str) -> bool:
    word, _, stamp = text.partition(":")
    if word not in _COMPARE:
        word, stamp = "eq", text
    try:
        moment = datetime.fromisoformat(stamp)
    except ValueError:
        raise BadQuery(name=name, value=text) from None
    moment = moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo else moment
    return _COMPARE[word](found.replace(microsecond=0), moment)
