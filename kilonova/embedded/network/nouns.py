"""Create, list, show, update and delete, the same for every noun: a noun is its row of attributes and a few rules.

What is special about a noun stands in its own file and reaches this one as functions on the `Noun`. Neither SQL
beyond one table nor HTTP is decided here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from kilonova.core import clock, ids
from kilonova.core.errors import NotFound
from kilonova.embedded.network import errors
from kilonova.embedded.network.attributes import REQUIRED, Attribute, project, text
from kilonova.embedded.store import Row, Rows, transact
from kilonova.sql.engine import Database

Event = dict[str, str]


@dataclass(frozen=True)
class World:
    """What the service works on. `emit` takes events for compute and returns at once."""

    database: Database
    emit: Callable[[Sequence[Event]], None]
    auto_cidr: str


@dataclass(frozen=True)
class Caller:
    """Who asks, and the events that the request causes; they go out when its transaction is committed."""

    world: World
    project_id: str | None
    privileged: bool  # an administrator or a service
    service: bool
    writer: bool
    events: list[Event] = field(default_factory=list)


def keep_row(c: Connection, caller: Caller, noun: Noun, row: Row) -> None:
    """Insert the row as it is: the create of a noun without rules of its own."""
    noun.insert(c, row)


def no_check(c: Connection, caller: Caller, row: Row, changes: Row) -> None:
    """Any change of settable attributes is fine: the update of a noun without rules of its own."""


def drop_row(c: Connection, caller: Caller, row: Row, noun: Noun) -> None:
    """Delete the row: the delete of a noun without rules of its own."""
    noun.rows.delete(c, row["id"])


def no_more(c: Connection, rows: list[Row]) -> None:
    """Nothing is computed: the derive of a noun that stores everything it shows."""


@dataclass(frozen=True, eq=False)
class Noun:
    """A kind of resource.

    shared: further conditions under which an ordinary caller sees a row (`:me` is the caller's project).
    create, update, delete: the rules; create inserts, delete deletes, update may add to the changes.
    derive: adds the computed attributes to rows. filters: conditions for arguments that are no column.
    """

    name: str
    plural: str
    rows: Rows
    missing: type[NotFound]
    own: tuple[Attribute, ...]
    shared: Callable[[], sa.ColumnElement[bool]] | None = None
    create: Callable[[Connection, Caller, Noun, Row], None] = keep_row
    update: Callable[[Connection, Caller, Row, Row], None] = no_check
    delete: Callable[[Connection, Caller, Row, Noun], None] = drop_row
    derive: Callable[[Connection, list[Row]], None] = no_more
    filters: Mapping[str, Callable[[Sequence[str]], sa.ColumnElement[bool]]] = field(default_factory=dict)
    visible_is_mine: bool = False  # who sees it may change it
    nameless: bool = False

    @cached_property
    def attributes(self) -> dict[str, Attribute]:
        return {a.name: a for a in (*STANDARD, *self.own) if a.name != "name" or not self.nameless}

    @cached_property
    def columns(self) -> frozenset[str]:
        return frozenset(self.rows.table.columns.keys())

    @cached_property
    def defaults(self) -> dict[str, Any]:
        return {a.stored: a.default for a in self.own if a.stored and a.default is not REQUIRED}

    def insert(self, c: Connection, row: Row) -> None:
        """Store what of the row are columns."""
        self.rows.insert(c, {name: value for name, value in row.items() if name in self.columns})

    def view(self, row: Row, *, privileged: bool, fields: Sequence[str] = ()) -> Row:
        """The resource as the caller may see it; only `fields` when any are named."""
        shown = {
            a.name: row.get(a.stored or a.name, a.default)
            for a in self.attributes.values()
            if (privileged or not a.hidden) and (not fields or a.name in fields)
        }
        for name in shown.keys() & _MOMENTS:
            shown[name] = clock.iso_z(shown[name])
        return shown


STANDARD = (
    Attribute("id", set="never"),
    Attribute("project_id", project, set="create"),
    Attribute("tenant_id", project, set="create", column="project_id"),
    Attribute("name", text(), ""),
    Attribute("description", text(), ""),
    Attribute("created_at", set="never"),
    Attribute("updated_at", set="never"),
    Attribute("revision_number", set="never"),
)
_MOMENTS = frozenset(("created_at", "updated_at"))


# -- bodies ------------------------------------------------------------------------------------------------------


def accept(noun: Noun, caller: Caller, body: Any, when: str) -> Row:
    """Columns and values of a request's body. Raises HTTPBadRequest, InvalidInput, PolicyNotAuthorized."""
    if not isinstance(body, dict):
        raise errors.HTTPBadRequest(f"The body of {noun.name} must be a map.")
    unknown = sorted(str(name) for name in body if name not in noun.attributes)
    if unknown:
        raise errors.HTTPBadRequest(f"Unrecognized attribute(s) '{', '.join(unknown)}'.")
    values: Row = {}
    for name, given in body.items():
        attribute = noun.attributes[name]
        if attribute.kind is None or attribute.set not in ("both", when):
            raise errors.HTTPBadRequest(f"Attribute '{name}' cannot be set in this request.")
        try:
            value = attribute.kind(given)
        except ValueError as error:
            raise errors.InvalidInput(reason=f"'{name}': {error}") from error
        if attribute.admin and not caller.privileged and (when == "update" or value != attribute.default):
            raise errors.PolicyNotAuthorized(action=f"setting '{name}' of a {noun.name}")
        values[attribute.stored or attribute.name] = value
    return values


def _complete(noun: Noun, caller: Caller, values: Row) -> Row:
    missing = [a.name for a in noun.own if a.default is REQUIRED and (a.stored or a.name) not in values]
    if missing:
        raise errors.HTTPBadRequest(f"Required attribute '{missing[0]}' not specified.")
    owner = values.get("project_id") or caller.project_id
    if owner is None:
        raise errors.HTTPBadRequest("A project is needed: name one as project_id, or use a token that has one.")
    if owner != caller.project_id and not caller.privileged:
        raise errors.HTTPBadRequest("Only administrators may name another project than their own.")
    return stamped({"name": "", "description": ""} | noun.defaults | values, owner)


def stamped(values: Row, owner: str) -> Row:
    """The values with what every new row has."""
    now = clock.utcnow()
    return {"id": ids.new_uuid(), "created_at": now, "updated_at": now, "revision_number": 0} | values | {
        "project_id": owner}  # fmt: skip


def only_writers(caller: Caller, noun: Noun) -> None:
    """Raises PolicyNotAuthorized for accounts that may only read."""
    if not caller.writer:
        raise errors.PolicyNotAuthorized(action=f"changing a {noun.name}")


# -- the five ----------------------------------------------------------------------------------------------------


def create(caller: Caller, noun: Noun, bodies: Sequence[Any], check: Callable[..., None]) -> list[Row]:
    """New resources, all or none; answers their rows. `check(c, project, noun)` is the quota's say on one more."""
    only_writers(caller, noun)
    wanted = [_complete(noun, caller, accept(noun, caller, body, "create")) for body in bodies]

    def work(c: Connection) -> list[Row]:
        caller.events.clear()
        made = [dict(row) for row in wanted]
        for row in made:
            check(c, row["project_id"], noun)
            noun.create(c, caller, noun, row)
        noun.derive(c, made)
        return made

    made = transact(caller.world.database, work)
    caller.world.emit(caller.events)
    return made


def make(c: Connection, caller: Caller, noun: Noun, **body: Any) -> Row:
    """A new resource of the service's own making, inside a transaction; keys are attributes, `__` for a colon."""
    named = {name.replace("__", ":"): value for name, value in body.items()}
    row = _complete(noun, caller, accept(noun, caller, named, "create"))
    noun.create(c, caller, noun, row)
    return row


def fetch(c: Connection, caller: Caller, noun: Noun, key: str, *, lock: bool = False) -> Row:
    """The row, if the caller may see it. Raises the noun's NotFound."""
    statement = selection(noun, (("id", "is"),), not caller.privileged, lock)
    found = c.execute(statement, {"w_id": key, "me": caller.project_id}).mappings().first()
    if found is None:
        raise noun.missing(id=key)
    return dict(found)


def show(caller: Caller, noun: Noun, key: str) -> Row:
    """One row with its computed attributes. Raises the noun's NotFound."""
    with caller.world.database.read() as c:
        row = fetch(c, caller, noun, key)
        noun.derive(c, [row])
    return row


def update(caller: Caller, noun: Noun, key: str, body: Any) -> Row:
    """Change attributes; answers the new row. Raises NotFound, PolicyNotAuthorized and the noun's refusals."""

    def work(c: Connection) -> Row:
        caller.events.clear()
        row = fetch(c, caller, noun, key, lock=True)
        only_owners(caller, noun, row)
        changes = accept(noun, caller, body, "update")
        noun.update(c, caller, row, changes)
        changes |= {"updated_at": clock.utcnow(), "revision_number": row["revision_number"] + 1}
        noun.rows.update(c, key, {name: value for name, value in changes.items() if name in noun.columns})
        row |= changes
        noun.derive(c, [row])
        return row

    row = transact(caller.world.database, work)
    caller.world.emit(caller.events)
    return row


def delete(caller: Caller, noun: Noun, key: str) -> None:
    """Remove the resource. Raises NotFound, PolicyNotAuthorized and the noun's refusals."""

    def work(c: Connection) -> None:
        caller.events.clear()
        row = fetch(c, caller, noun, key, lock=True)
        only_owners(caller, noun, row)
        noun.delete(c, caller, row, noun)

    transact(caller.world.database, work)
    caller.world.emit(caller.events)


def only_owners(caller: Caller, noun: Noun, row: Row) -> None:
    """Raises PolicyNotAuthorized when the caller sees the row but may not change it."""
    only_writers(caller, noun)
    if not (caller.privileged or noun.visible_is_mine or row["project_id"] == caller.project_id):
        raise errors.PolicyNotAuthorized(action=f"changing {noun.name} {row['id']}")


@lru_cache(512)
def selection(noun: Noun, shape: tuple[tuple[str, str], ...], restricted: bool, lock: bool) -> sa.Select[Any]:
    """Rows of a noun by columns (name, "is" or "in"; values as `w_<name>`), those that `:me` sees if `restricted`."""
    table = noun.rows.table
    statement = sa.select(table)
    for name, kind in shape:
        mark = sa.bindparam(f"w_{name}", type_=table.c[name].type, expanding=kind == "in")
        statement = statement.where(table.c[name].in_(mark) if kind == "in" else table.c[name] == mark)
    if restricted:
        mine = table.c.project_id == sa.bindparam("me", type_=sa.String)
        statement = statement.where(mine if noun.shared is None else sa.or_(mine, noun.shared()))
    return statement.with_for_update() if lock else statement
