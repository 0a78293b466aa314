"""The things that identity names (domains, projects, users, roles, services …) as clients see them.

A noun's row is its columns and whatever else the client sent along (`extra`), which is shown beside them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kilonova.core.errors import NotFound
from kilonova.embedded.store import Row, Rows, page
from kilonova.http.fields import Query
from kilonova.http.op import Op, Request

ANY_QUERY = Query(open=True)


class NounNotFound(NotFound):
    code, message = "not_found", "Could not find {noun}: {id}."


@dataclass(frozen=True)
class Noun:
    """`shown` are the columns that clients see and may filter by; `fixed` is shown with every object as it is."""

    name: str
    plural: str
    rows: Rows
    shown: tuple[str, ...]
    fixed: Mapping[str, Any] = field(default_factory=dict)

    @property
    def path(self) -> str:
        return f"/v3/{self.plural}"


def find(req: Request, noun: Noun, key: str) -> Row:
    """The row with this id. Raises NounNotFound."""
    with req.world.database.read() as connection:
        row = noun.rows.get(connection, key)
    if row is None:
        raise NounNotFound(noun=noun.name.replace("_", " "), id=key)
    return row


def view(req: Request, noun: Noun, row: Row) -> dict[str, Any]:
    """The object of a row."""
    shown = {name: row[name] for name in noun.shown}
    return {**row.get("extra", {}), **noun.fixed, **shown, "links": {"self": f"{req.base_url}{noun.path}/{row['id']}"}}


def listed(req: Request, plural: str, objects: list[Any]) -> dict[str, Any]:
    """The body of a list answer."""
    here = f"{req.base_url}{req.path_info}"
    query = req.environ.get("QUERY_STRING")
    return {plural: objects, "links": {"next": None, "self": f"{here}?{query}" if query else here, "previous": None}}


def select(req: Request, noun: Noun) -> list[Row]:
    """The rows that the query asks for, by id."""
    asked = {name: values for name, values in req.query.items() if name in noun.shown and name != "tags"}
    tags = {tag for text in req.query.get("tags", ()) for tag in text.split(",")}
    with req.world.database.read() as connection:
        rows = noun.rows.find(connection, noun.rows.conditions(asked))
    return page((row for row in rows if tags <= set(row.get("tags", ()))), sort=(("id", "asc"),))[0]


def split(noun: Noun, body: Mapping[str, Any]) -> Row:
    """A create body as a row: known columns, the rest in `extra`. What the service itself sets is left out."""
    columns = {name: value for name, value in body.items() if name in noun.shown and name != "id"}
    if columns.get("description", "") is None:
        columns["description"] = ""
    ignored = {"id", "links", "password", "options", *noun.fixed}
    extra = {name: value for name, value in body.items() if name not in columns and name not in ignored}
    return {**columns, "extra": extra}


def merged(noun: Noun, row: Row, body: Mapping[str, Any]) -> Row:
    """The changes that an update body asks for; members of `extra` that it does not name are kept."""
    changes = split(noun, body)
    changes["extra"] = {**row["extra"], **changes["extra"]}
    return changes


def list_op(noun: Noun, policy: str | None) -> Op:
    """GET the collection; filters are the shown columns."""

    def handler(req: Request) -> dict[str, Any]:
        return listed(req, noun.plural, [view(req, noun, row) for row in select(req, noun)])

    return Op("GET", noun.path, handler, policy=policy, query=ANY_QUERY)


def show_op(noun: Noun, policy: str | None) -> Op:
    """GET one."""

    def handler(req: Request) -> dict[str, Any]:
        return {noun.name: view(req, noun, find(req, noun, req.path["id"]))}

    return Op("GET", f"{noun.path}/{{id}}", handler, policy=policy)
