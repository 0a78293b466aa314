"""Volume types and their extra specs. Two exist from the start: the default one, and one for shared volumes."""

from __future__ import annotations

from typing import Any

from sqlalchemy.engine import Connection

from kilonova.core import ids
from kilonova.embedded.store import Duplicate, Row, transact
from kilonova.embedded.volumes.tables import types, volumes
from kilonova.embedded.volumes.world import (
    ENTRIES,
    NAME,
    TEXT,
    Caller,
    InvalidInput,
    KeyNotFound,
    TypeExists,
    TypeNotFound,
    caller_of,
    fresh,
    paged,
    ruler_of,
)
from kilonova.http.fields import Bool, Field, Obj, Query, wrap
from kilonova.http.op import Answer, Op, Request
from kilonova.sql.engine import Database

DEFAULT = "__DEFAULT__"
SHARED_SPEC = {"multiattach": "<is> True"}
_FIRST: tuple[tuple[str, str, dict[str, str]], ...] = (
    (DEFAULT, "Default Volume Type", {}),
    ("multiattach", "For several servers at once", SHARED_SPEC),
)


def bootstrap(database: Database) -> None:
    """Make the first types, when there are none at all."""

    def work(c: Connection) -> None:
        if not types.find(c):
            for name, description, specs in _FIRST:
                types.insert(c, fresh(name=name, description=description, is_public=True, extra_specs=specs))

    transact(database, work)


def named(c: Connection, caller: Caller, key: str | None) -> Row:
    """The type with this id or name, the default one for None. Raises TypeNotFound."""
    key = key or DEFAULT
    row = types.get(c, key) if ids.is_uuid_like(key) else None
    found = row or next(iter(types.find(c, {"name": key})), None)
    if found is None or not (found["is_public"] or caller.privileged):
        raise TypeNotFound(id=key)
    return found


def _view(row: Row, caller: Caller) -> Row:
    view = {name: row[name] for name in ("id", "name", "description", "is_public", "extra_specs")}
    view["os-volume-type-access:is_public"] = row["is_public"]
    return view | ({"qos_specs_id": None} if caller.privileged else {})


def _list(req: Request) -> Row:
    caller = caller_of(req)
    with req.world.database.read() as c:
        rows = [row for row in types.find(c) if row["is_public"] or caller.privileged]
    return paged(req, rows, "volume_types", lambda row: _view(row, caller))


def _show(req: Request) -> Row:
    caller = caller_of(req)
    with req.world.database.read() as c:
        key = req.path["id"]
        return {"volume_type": _view(named(c, caller, None if key == "default" else key), caller)}


def _create(req: Request) -> Row:
    caller, given = ruler_of(req, "volume_extension:type_create"), req.body["volume_type"]
    row = fresh(
        name=given["name"].strip(), description=given.get("description"), extra_specs=given.get("extra_specs") or {},
        is_public=given.get("os-volume-type-access:is_public", True),
    )  # fmt: skip
    if not row["name"]:
        raise InvalidInput("Volume type name can not be empty.")
    try:
        with req.world.database.write() as c:
            types.insert(c, row)
    except Duplicate as error:
        raise TypeExists(name=row["name"]) from error
    return {"volume_type": _view(row, caller)}


def _update(req: Request) -> Row:
    caller, given = ruler_of(req, "volume_extension:type_update"), req.body["volume_type"]
    try:
        with req.world.database.write() as c:
            row = named(c, caller, req.path["id"])
            types.update(c, row["id"], given)
    except Duplicate as error:
        raise TypeExists(name=given["name"]) from error
    return {"volume_type": _view(row | given, caller)}


def _delete(req: Request) -> None:
    caller = ruler_of(req, "volume_extension:type_delete")
    with req.world.database.write() as c:
        row = named(c, caller, req.path["id"])
        if row["name"] == DEFAULT:
            raise InvalidInput("The default volume type cannot be deleted.")
        if volumes.find(c, {"type_id": row["id"]}):
            raise InvalidInput(f"Volume type {row['id']} is used by volumes.")
        types.delete(c, row["id"])


# -- extra specs -------------------------------------------------------------------------------------------------


def _specs(req: Request) -> Row:
    with req.world.database.read() as c:
        return {"extra_specs": named(c, caller_of(req), req.path["id"])["extra_specs"]}


def _spec(req: Request) -> Row:
    key = req.path["key"]
    found = _specs(req)["extra_specs"]
    if key not in found:
        raise KeyNotFound(id=key, what=f"volume type {req.path['id']}")
    return {key: found[key]}


def _change_specs(req: Request, given: dict[str, str], drop: str | None = None) -> None:
    caller = ruler_of(req, "volume_extension:types_extra_specs")
    with req.world.database.write() as c:
        row = named(c, caller, req.path["id"])
        if drop is not None and drop not in row["extra_specs"]:
            raise KeyNotFound(id=drop, what=f"volume type {row['id']}")
        specs = {key: value for key, value in (row["extra_specs"] | given).items() if key != drop}
        types.update(c, row["id"], {"extra_specs": specs})


def _add_specs(req: Request) -> Row:
    _change_specs(req, req.body["extra_specs"])
    return {"extra_specs": req.body["extra_specs"]}


def _set_spec(req: Request) -> Any:
    if list(req.body) != [req.path["key"]]:
        raise InvalidInput("The body must hold the key that the path names, and no other.")
    _change_specs(req, req.body)
    return req.body


def _drop_spec(req: Request) -> Answer:
    _change_specs(req, {}, drop=req.path["key"])
    return Answer()


_NEW = Obj(Field("name", NAME, required=True), Field("description", TEXT), Field("extra_specs", ENTRIES),
           Field("os-volume-type-access:is_public", Bool()))  # fmt: skip
_CHANGE = Obj(Field("name", NAME), Field("description", TEXT), Field("is_public", Bool()), min=1)
_ONE, _KEY = "/types/{id}", "/types/{id}/extra_specs/{key}"
OPS: tuple[Op, ...] = (
    Op("GET", "/types", _list, query=Query(open=True)),
    Op("POST", "/types", _create, body=wrap("volume_type", _NEW), errors=(409,)),
    Op("GET", _ONE, _show),
    Op("PUT", _ONE, _update, body=wrap("volume_type", _CHANGE), errors=(409,)),
    Op("DELETE", _ONE, _delete, ok=202),
    Op("GET", "/types/{id}/extra_specs", _specs),
    Op("POST", "/types/{id}/extra_specs", _add_specs, body=wrap("extra_specs", ENTRIES)),
    Op("GET", _KEY, _spec),
    Op("PUT", _KEY, _set_spec, body=ENTRIES),
    Op("DELETE", _KEY, _drop_spec, ok=202),
)
