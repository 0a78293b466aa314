"""Resource classes."""

from __future__ import annotations

from typing import Any

from kilonova.http.fields import Field, Obj
from kilonova.http.op import Op, Request
from kilonova.placement.api.answers import CUSTOM_NAME, Dated, newest
from kilonova.placement.api.custom import custom_class
from kilonova.placement.errors import NoSuch
from kilonova.placement.store import classes
from kilonova.placement.store.names import Names

BODY = Obj(Field("name", CUSTOM_NAME, required=True))


def _shown(name: str, req: Request) -> dict[str, Any]:
    here = f"{req.environ.get('SCRIPT_NAME', '')}/resource_classes/{name}"
    return {"name": name, "links": [{"rel": "self", "href": here}]}


def _where(name: str, req: Request) -> tuple[tuple[str, str], ...]:
    return (("Location", f"{req.base_url}/resource_classes/{name}"),)


def list_classes(req: Request) -> Dated:
    """All classes, the standard ones first."""
    names: Names = req.world.keeper.current().names
    body = {"resource_classes": [_shown(name, req) for name in names.class_ids]}
    return Dated(body, newest(names.class_stamps.values()))


def create_class(req: Request) -> Dated:
    """A new custom class."""
    req.world.writer.run(lambda tx: classes.create(tx, req.body["name"]))
    return Dated(headers=_where(req.body["name"], req))


def show_class(req: Request) -> Dated:
    """One class."""
    names: Names = req.world.keeper.current().names
    name = req.path["name"]
    if name not in names.class_ids:
        raise NoSuch(f"No such resource class: {name}.")
    return Dated(_shown(name, req), names.class_stamps[name])


def rename_class(req: Request) -> Dated:
    """Give a custom class another name (until 1.6)."""
    req.world.writer.run(lambda tx: classes.rename(tx, req.path["name"], req.body["name"]))
    return Dated(_shown(req.body["name"], req))


def ensure_class(req: Request) -> Dated:
    """Make a custom class: 201 new, 204 there already (from 1.7)."""
    name = custom_class(req)
    fresh = req.world.writer.run(lambda tx: classes.ensure(tx, name))
    return Dated(None, None, 201 if fresh else 204, _where(name, req))


def delete_class(req: Request) -> None:
    """Remove a custom class that no inventory is of."""
    req.world.writer.run(lambda tx: classes.delete(tx, req.path["name"]))


_ONE = "/resource_classes/{name}"
_RULE = "placement:resource_classes:"

OPS = (
    Op("GET", "/resource_classes", list_classes, _RULE + "list", since="1.2"),
    Op("POST", "/resource_classes", create_class, _RULE + "create", body=BODY, ok=201, errors=(409,), since="1.2"),
    Op("GET", _ONE, show_class, _RULE + "show", since="1.2"),
    Op("PUT", _ONE, rename_class, _RULE + "update", body=BODY, errors=(409,), since="1.2", until="1.6"),
    Op("PUT", _ONE, ensure_class, _RULE + "update", ok=201, errors=(204,), since="1.7"),
    Op("DELETE", _ONE, delete_class, _RULE + "delete", ok=204, errors=(409,), since="1.2"),
)
