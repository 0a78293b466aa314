"""Unified limits, the flat model: a registered default per service and resource, and a project's own number."""

from __future__ import annotations

from typing import Any

from sqlalchemy.engine import Connection

from kilonova.core import ids
from kilonova.core.errors import Conflict, Forbidden, Invalid
from kilonova.embedded.identity.nouns import ANY_QUERY, Noun, find, listed, select, show_op, view
from kilonova.embedded.identity.tables import LIMITS, PROJECTS, REGIONS, REGISTERED_LIMITS, SERVICES
from kilonova.embedded.store import Duplicate, Row, Rows
from kilonova.http.fields import Arr, Field, Int, Obj, Str, wrap
from kilonova.http.op import Op, Request

_PLACE = ("service_id", "region_id", "resource_name")
REGISTERED = Noun("registered_limit", "registered_limits", REGISTERED_LIMITS,
                  ("id", *_PLACE, "default_limit", "description"))  # fmt: skip
LIMIT = Noun("limit", "limits", LIMITS, ("id", *_PLACE, "project_id", "domain_id", "resource_limit", "description"))

_NUMBER = Int(-1, 2147483647, strict=True)
_WHERE = (
    Field("service_id", Str(1, 64), required=True),
    Field("region_id", Str(1, 255, null=True)),
    Field("resource_name", Str(1, 255), required=True),
    Field("description", Str(null=True)),
)
_CREATE_REGISTERED = wrap(
    "registered_limits", Arr(Obj(*_WHERE, Field("default_limit", _NUMBER, required=True)), min=1)
)
_CREATE = wrap("limits", Arr(Obj(
    *_WHERE, Field("resource_limit", _NUMBER, required=True), Field("project_id", Str(1, 64, null=True)),
    Field("domain_id", Str(1, 64, null=True))), min=1))  # fmt: skip
_UPDATE = wrap("limit", Obj(Field("resource_limit", _NUMBER), Field("description", Str(null=True))))
_UPDATE_REGISTERED = wrap("registered_limit", Obj(
    Field("default_limit", _NUMBER), Field("description", Str(null=True)), Field("service_id", Str(1, 64)),
    Field("region_id", Str(1, 255, null=True)), Field("resource_name", Str(1, 255))))  # fmt: skip

_MODEL = {"name": "flat", "description": "Limit enforcement and validation does not take project hierarchy into"
          " consideration."}  # fmt: skip


class UnknownReference(Invalid):
    code, message = "unknown_reference", "The {noun} {id} does not exist."


class NotRegistered(Forbidden):
    code = "limit_not_registered"
    message = "There is no registered limit for {resource_name} of service {service_id} in that region."


class LimitInUse(Conflict):
    code, message = "limit_in_use", "The registered limit has limits of projects and cannot be removed or moved."


def _check_references(connection: Connection, row: Row) -> None:
    for noun, rows in (("service", SERVICES), ("region", REGIONS), ("project", PROJECTS)):
        key = row.get(f"{noun}_id")
        if key is not None and rows.get(connection, key) is None:
            raise UnknownReference(noun=noun, id=key)


def _insert_new(connection: Connection, rows: Rows, row: Row, unique: tuple[str, ...]) -> None:
    # Nulls are part of the identity here, which unique constraints do not see.
    if rows.find(connection, {name: row.get(name) for name in unique}):
        raise Duplicate
    rows.insert(connection, row)


def _create_registered(req: Request) -> dict[str, Any]:
    made = [{"id": ids.new_hex(), "region_id": None, "description": None, **body}
            for body in req.body["registered_limits"]]  # fmt: skip
    with req.world.database.write() as connection:
        for row in made:
            _check_references(connection, row)
            _insert_new(connection, REGISTERED_LIMITS, row, _PLACE)
    return listed(req, "registered_limits", [view(req, REGISTERED, row) for row in made])


def _create(req: Request) -> dict[str, Any]:
    made = [{"id": ids.new_hex(), "region_id": None, "description": None, "project_id": None, "domain_id": None,
             **body} for body in req.body["limits"]]  # fmt: skip
    with req.world.database.write() as connection:
        for row in made:
            if (row["project_id"] is None) == (row["domain_id"] is None):
                raise UnknownReference(noun="project or domain", id="(exactly one is needed)")
            _check_references(connection, row)
            if not REGISTERED_LIMITS.find(connection, {name: row[name] for name in _PLACE}):
                raise NotRegistered(**row)
            _insert_new(connection, LIMITS, row, (*_PLACE, "project_id", "domain_id"))
    return listed(req, "limits", [view(req, LIMIT, row) for row in made])


def _list(req: Request) -> dict[str, Any]:
    """Readers see all, everybody else the limits of their own project."""
    rows = select(req, LIMIT)
    if not req.allowed("service_or_read"):
        rows = [row for row in rows if row["project_id"] is not None and row["project_id"] == req.ctx.project_id]
    return listed(req, "limits", [view(req, LIMIT, row) for row in rows])


def _list_registered(req: Request) -> dict[str, Any]:
    return listed(req, "registered_limits", [view(req, REGISTERED, row) for row in select(req, REGISTERED)])


def _update(req: Request) -> dict[str, Any]:
    row = find(req, LIMIT, req.path["id"])
    with req.world.database.write() as connection:
        LIMITS.update(connection, row["id"], req.body["limit"])
    return {"limit": view(req, LIMIT, {**row, **req.body["limit"]})}


def _update_registered(req: Request) -> dict[str, Any]:
    row, changes = find(req, REGISTERED, req.path["id"]), req.body["registered_limit"]
    with req.world.database.write() as connection:
        if any(changes.get(name, row[name]) != row[name] for name in _PLACE):
            _check_references(connection, changes)
            _refuse_in_use(connection, row)
        REGISTERED_LIMITS.update(connection, row["id"], changes)
    return {"registered_limit": view(req, REGISTERED, {**row, **changes})}


def _refuse_in_use(connection: Connection, row: Row) -> None:
    if LIMITS.find(connection, {name: row[name] for name in _PLACE}):
        raise LimitInUse


def _delete(req: Request) -> None:
    row = find(req, LIMIT, req.path["id"])
    with req.world.database.write() as connection:
        LIMITS.delete(connection, row["id"])


def _delete_registered(req: Request) -> None:
    row = find(req, REGISTERED, req.path["id"])
    with req.world.database.write() as connection:
        _refuse_in_use(connection, row)
        REGISTERED_LIMITS.delete(connection, row["id"])


def _model(req: Request) -> dict[str, Any]:
    return {"model": _MODEL}


_ADMIN = "admin_required"
OPS = (
    Op("GET", "/v3/registered_limits", _list_registered, query=ANY_QUERY),
    show_op(REGISTERED, None),
    Op("POST", "/v3/registered_limits", _create_registered, policy=_ADMIN, body=_CREATE_REGISTERED, ok=201,
       errors=(409,)),
    Op("PATCH", "/v3/registered_limits/{id}", _update_registered, policy=_ADMIN, body=_UPDATE_REGISTERED,
       errors=(409,)),
    Op("DELETE", "/v3/registered_limits/{id}", _delete_registered, policy=_ADMIN, ok=204, errors=(409,)),
    Op("GET", "/v3/limits/model", _model),
    Op("GET", "/v3/limits", _list, query=ANY_QUERY),
    show_op(LIMIT, "service_or_read"),
    Op("POST", "/v3/limits", _create, policy=_ADMIN, body=_CREATE, ok=201, errors=(409,)),
    Op("PATCH", "/v3/limits/{id}", _update, policy=_ADMIN, body=_UPDATE),
    Op("DELETE", "/v3/limits/{id}", _delete, policy=_ADMIN, ok=204),
)  # fmt: skip
