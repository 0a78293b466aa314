"""Lists of any noun: filters by the columns shown, order, pages. Knows no noun by name."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from kilonova.embedded.network import errors, nouns
from kilonova.embedded.network.attributes import Attribute
from kilonova.embedded.network.nouns import Caller, Noun
from kilonova.embedded.store import Row, page

_LIST_WORDS = frozenset(("fields", "limit", "marker", "sort_key", "sort_dir", "page_reverse"))
_MAX_PAGE = 1000
_COUNT = re.compile(r"^[0-9]{1,9}$", re.ASCII)


def listed(
    caller: Caller, noun: Noun, query: Mapping[str, Sequence[str]], fields: Sequence[str] = ()
) -> tuple[list[Row], bool]:
    """The rows that match, one page of them, and whether more follow. Raises HTTPBadRequest for unknown arguments.

    fields: the attributes that will be shown, all when it is empty; where these are stored, nothing is computed.
    """
    where: dict[str, Any] = {}
    extra: list[sa.ColumnElement[bool]] = []
    for name, values in query.items():
        attribute = noun.attributes.get(name)
        if name in noun.filters:
            extra.append(noun.filters[name](values))
        elif attribute is not None and attribute.stored and not _is(noun, attribute, sa.JSON, sa.DateTime):
            where |= noun.rows.conditions({attribute.stored: values})
        elif name not in _LIST_WORDS:
            raise errors.HTTPBadRequest(f"['{name}'] is invalid attribute for filtering")
    shape = tuple((name, "in" if isinstance(value, list) else "is") for name, value in where.items())
    statement = nouns.selection(noun, shape, not caller.privileged, False)
    statement = statement.where(*extra) if extra else statement
    with caller.world.database.read() as c:
        found = c.execute(statement, {f"w_{k}": v for k, v in where.items()} | {"me": caller.project_id}).mappings()
        rows, more = _paged(noun, [dict(row) for row in found], query)
        if not fields or any(_computed(noun, name) for name in fields):
            noun.derive(c, rows)
    return rows, more


def _computed(noun: Noun, name: str) -> bool:
    attribute = noun.attributes.get(name)
    return attribute is not None and attribute.stored not in noun.columns


def _is(noun: Noun, attribute: Attribute, *types: type[sa.types.TypeEngine[Any]]) -> bool:
    return isinstance(noun.rows.table.c[attribute.stored].type, types)


def _paged(noun: Noun, rows: list[Row], query: Mapping[str, Sequence[str]]) -> tuple[list[Row], bool]:
    keys, directions = query.get("sort_key", ()), query.get("sort_dir", ())
    if directions and len(directions) != len(keys):
        raise errors.HTTPBadRequest("As many sort_dir as sort_key are needed.")
    order = []
    for place, key in enumerate(keys):
        attribute = noun.attributes.get(key)
        if attribute is None or not attribute.stored or _is(noun, attribute, sa.JSON):
            raise errors.HTTPBadRequest(f"['{key}'] is invalid attribute for sorting")
        order.append((attribute.stored, directions[place] if directions else "asc"))
    if any(direction not in ("asc", "desc") for _, direction in order):
        raise errors.HTTPBadRequest("sort_dir is asc or desc.")
    limit, marker = query.get("limit", ("",))[0], query.get("marker", (None,))[0]
    if limit and not _COUNT.match(limit):
        raise errors.HTTPBadRequest("limit is not a number of at most nine digits.")
    size = min(int(limit), _MAX_PAGE) if limit and int(limit) else None
    return page(rows, sort=(*order, ("created_at", "asc"), ("id", "asc")), limit=size, marker=marker)
