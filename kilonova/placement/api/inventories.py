"""Inventories of a provider, as a whole and class by class."""

from __future__ import annotations

from typing import Any

from kilonova.http.fields import Field, Int, Map, Obj, Raw
from kilonova.http.op import Op, Request
from kilonova.placement.api.answers import CLASS_NAME_PATTERN, GENERATION, Dated, newest, provider_id, provider_of
from kilonova.placement.errors import BadRequest, MethodNotAllowed, NoSuch
from kilonova.placement.store import inventories, providers
from kilonova.placement.store.inventories import MAX_INT, Inventory, Stored

_AMOUNT, _COUNT = Int(1, MAX_INT, strict=True), Int(0, MAX_INT, strict=True)
_RATIO = Raw({"type": "number", "maximum": 3.40282e38})
_NAME = Raw({"type": "string", "pattern": CLASS_NAME_PATTERN, "maxLength": 255})
RECORD = Obj(
    Field("total", _AMOUNT, required=True),
    Field("reserved", _COUNT),
    Field("min_unit", _AMOUNT),
    Field("max_unit", _AMOUNT),
    Field("step_size", _AMOUNT),
    Field("allocation_ratio", _RATIO),
)
REPLACE_ONE = RECORD.plus(Field("resource_provider_generation", GENERATION, required=True))
ADD = RECORD.plus(
    Field("resource_class", _NAME, required=True), Field("resource_provider_generation", GENERATION)
)
REPLACE_ALL = Obj(
    Field("resource_provider_generation", GENERATION, required=True),
    Field(
        "inventories",
        Map(CLASS_NAME_PATTERN, RECORD.plus(Field("resource_provider_generation", GENERATION))),
        required=True,
    ),
)
FLAGS = {"all_reserved": "1.26"}


def _shown(inventory: Inventory) -> dict[str, Any]:
    return {
        "total": inventory.total,
        "reserved": inventory.reserved,
        "min_unit": inventory.min_unit,
        "max_unit": inventory.max_unit,
        "step_size": inventory.step_size,
        "allocation_ratio": inventory.allocation_ratio,
    }


def read(req: Request, uuid: str, name: str, body: dict[str, Any]) -> Inventory:
    """The inventory of a body; what is checked of `reserved` is the capacity it leaves."""
    given = {key: body[key] for key in RECORD_KEYS if key in body}
    given["allocation_ratio"] = float(given.get("allocation_ratio", 1.0))
    inventory = Inventory(**given)
    capacity = inventory.capacity
    if capacity < 0 or (capacity == 0 and not req.flag("all_reserved")):
        raise BadRequest(
            f"Unable to {'create' if req.op.method == 'POST' else 'update'} inventory for resource provider "
            f"{uuid}: Invalid inventory for '{name}'. "
            f"The reserved value is greater than {'' if req.flag('all_reserved') else 'or equal to '}total."
        )
    return inventory


RECORD_KEYS = [field.name for field in RECORD.fields]


def _all(req: Request) -> Dated:
    with req.world.database.read() as connection:
        provider = providers.show(connection, provider_id(req))
        found = inventories.of(connection, provider.id)
    body = {
        "inventories": {one.class_name: _shown(one.inventory) for one in found},
        "resource_provider_generation": provider.generation,
    }
    return Dated(body, newest(one.updated_at for one in found))


def list_inventories(req: Request) -> Dated:
    """All classes of the provider."""
    return _all(req)


def replace_inventories(req: Request) -> Dated:
    """Make the provider have exactly these."""
    wanted = {name: read(req, provider_id(req), name, body) for name, body in req.body["inventories"].items()}
    names = req.world.keeper.names(classes=wanted)
    generation = req.world.writer.run(
        lambda tx: inventories.replace(
            tx, provider_id(req), req.body["resource_provider_generation"], wanted, names
        )
    )
    body = {
        "inventories": {name: _shown(inventory) for name, inventory in wanted.items()},
        "resource_provider_generation": generation,
    }
    return Dated(body)


def delete_inventories(req: Request) -> None:
    """All of them, none being in use."""
    names = req.world.keeper.names()
    req.world.writer.run(lambda tx: inventories.replace(tx, provider_id(req), None, {}, names))


def no_delete_yet(req: Request) -> None:
    """Before 1.5 the path is known and cannot be deleted: 405, as in the reference."""
    raise MethodNotAllowed


def add_inventory(req: Request) -> Dated:
    """One more class."""
    name = req.body["resource_class"]
    names = req.world.keeper.names(classes=(name,))
    inventory = read(req, provider_id(req), name, req.body)
    generation = req.world.writer.run(lambda tx: inventories.add(tx, provider_id(req), name, inventory, names))
    where = f"{req.base_url}/resource_providers/{provider_id(req)}/inventories/{name}"
    body = _shown(inventory) | {"resource_provider_generation": generation}
    return Dated(body, headers=(("Location", where),))


def show_inventory(req: Request) -> Dated:
    """One class of the provider."""
    name = req.path["resource_class"]
    with req.world.database.read() as connection:
        provider = providers.show(connection, provider_id(req))
        found = inventories.of(connection, provider.id)
    one: Stored | None = next((one for one in found if one.class_name == name), None)
    if one is None:
        raise NoSuch(f"No inventory of class {name} for {provider.uuid}")
    return Dated(_shown(one.inventory) | {"resource_provider_generation": provider.generation}, one.updated_at)


def replace_inventory(req: Request) -> Dated:
    """Overwrite one class that the provider has."""
    name = req.path["resource_class"]
    names = req.world.keeper.names(classes=(name,))
    inventory = read(req, provider_id(req), name, req.body)
    generation = req.world.writer.run(
        lambda tx: inventories.change(
            tx, provider_id(req), req.body["resource_provider_generation"], name, inventory, names
        )
    )
    return Dated(_shown(inventory) | {"resource_provider_generation": generation})


def delete_inventory(req: Request) -> None:
    """One class, not being in use."""
    name = req.path["resource_class"]
    names = req.world.keeper.names(classes=(name,))
    req.world.writer.run(lambda tx: inventories.remove(tx, provider_id(req), name, names))


_PATH = "/resource_providers/{uuid}/inventories"
_ONE = _PATH + "/{resource_class}"
_RULE = "placement:resource_providers:inventories:"

OPS = (
    Op("GET", _PATH, list_inventories, _RULE + "list"),
    Op("PUT", _PATH, replace_inventories, _RULE + "update", target=provider_of, policy_first=True, body=REPLACE_ALL,
       errors=(409,), flags=FLAGS),
    Op("POST", _PATH, add_inventory, _RULE + "create", target=provider_of, policy_first=True, body=ADD, ok=201,
       errors=(409,), flags=FLAGS),
    Op("DELETE", _PATH, no_delete_yet, _RULE + "delete", ok=204, errors=(405,), until="1.4"),
    Op("DELETE", _PATH, delete_inventories, _RULE + "delete", ok=204, errors=(409,), since="1.5"),
    Op("GET", _ONE, show_inventory, _RULE + "show"),
    Op("PUT", _ONE, replace_inventory, _RULE + "update", target=provider_of, policy_first=True, body=REPLACE_ONE,
       errors=(409,), flags=FLAGS),
    Op("DELETE", _ONE, delete_inventory, _RULE + "delete", ok=204, errors=(409,)),
)  # fmt: skip
