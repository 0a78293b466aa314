"""Pages of lists: how many, from where, and the link to the next page (errors.md 9)."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, urlencode

from kilonova.core.errors import Invalid
from kilonova.http.fields import NONNEG, Param, Str
from kilonova.http.op import Request


class MarkerNotFound(Invalid):
    """The marker names nothing."""

    code, message = "marker_not_found", "Marker {marker} could not be found."


LIMIT = Param("limit", NONNEG)
MARKER = Param("marker", Str())


def page_size(request: Request, max_limit: int) -> int:
    """min(`limit`, the configured maximum); the maximum when there is no limit."""
    limit = request.query.get("limit")
    return max_limit if limit is None else min(int(limit), max_limit)


def next_link(request: Request, collection: str, count: int, size: int, marker: str) -> list[dict[str, str]] | None:
    """The one-element list that follows a full page, else None. collection: `servers/detail` and the like."""
    if size <= 0 or count != size:
        return None
    query = dict(parse_qsl(request.environ.get("QUERY_STRING", ""), keep_blank_values=True))
    query["marker"] = marker
    url = f"{request.collection_url}/{collection}?{urlencode(sorted(query.items()))}"
    return [{"rel": "next", "href": url}]


def with_links(document: dict[str, Any], key: str, links: list[dict[str, str]] | None) -> dict[str, Any]:
    """The document, with `key` where there is a next page."""
    if links:
        document[key] = links
    return document
