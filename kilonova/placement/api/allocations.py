"""Allocations: of a consumer, of many consumers in one write, of a provider."""

from __future__ import annotations

from typing import Any

from kilonova.core import ids
from kilonova.http.fields import Arr, Field, Int, Map, Obj, Raw, Type
from kilonova.http.op import Op, Request
from kilonova.http.versions import Since
from kilonova.placement.api.answers import (
    CLASS_NAME_PATTERN,
    END,
    GENERATION,
    NAME,
    UUID_PATTERN,
    Dated,
    by_uuid,
    newest,
    provider_id,
    words,
)
from kilonova.placement.errors import BadRequest
from kilonova.placement.store import claims, providers, reading
from kilonova.placement.store.claims import Claim
from kilonova.placement.store.inventories import MAX_INT
from kilonova.placement.store.reading import Consumer

_RESOURCES = Map(CLASS_NAME_PATTERN, Int(1, MAX_INT, strict=True), min=1)
_UUID = Raw({"type": "string", "pattern": UUID_PATTERN})
_OWNER = words(255)
_CONSUMER_GENERATION = Raw({"type": ["integer", "null"]})
_MAPPINGS = Map("^([a-zA-Z0-9_-]{1,64})?" + END, Arr(_UUID, 1), min=1)


def _by_provider(least: int | None) -> Type:
    """The form from 1.12 on; `generation` is accepted and not looked at."""
    return Map(UUID_PATTERN, Obj(Field("resources", _RESOURCES, required=True), Field("generation", GENERATION)), least)


def _body(allocations: Type) -> Obj:
    return Obj(
        Field("allocations", allocations, required=True),
        Field("project_id", _OWNER, required=True, since="1.8"),
        Field("user_id", _OWNER, required=True, since="1.8"),
        Field("consumer_generation", _CONSUMER_GENERATION, required=True, since="1.28"),
        Field("mappings", _MAPPINGS, since="1.34"),
        Field("consumer_type", NAME, required=True, since="1.38"),
    )


_LIST_FORM = Arr(
    Obj(
        Field("resource_provider", Obj(Field("uuid", _UUID, required=True)), required=True),
        Field("resources", _RESOURCES, required=True),
    ),
    1,
)
REPLACE: Since[Type | None] = Since(
    _body(_LIST_FORM),
    ("1.12", _body(_by_provider(1))),
    ("1.28", _body(_by_provider(None))),
)
CONSUMER = _body(_by_provider(None))
REPLACE_MANY = Map(UUID_PATTERN, CONSUMER, min=1)
FLAGS = {"by_provider": "1.12", "owners": "1.12", "generations": "1.28", "types": "1.38"}


def claim(req: Request, consumer: str, body: dict[str, Any]) -> Claim:
    """What a body of CONSUMER or REPLACE asks for."""
    given = body["allocations"]
    if isinstance(given, list):
        amounts = {entry["resource_provider"]["uuid"].lower(): entry["resources"] for entry in given}
    else:
        amounts = {uuid: entry["resources"] for uuid, entry in by_uuid(given).items()}
    return Claim(
        consumer, amounts, body.get("project_id"), body.get("user_id"), body.get("consumer_type"),
        req.flag("generations"), body.get("consumer_generation"),
    )  # fmt: skip


def _write(req: Request, wanted: list[Claim]) -> None:
    keeper = req.world.keeper
    names = keeper.names(classes={name for one in wanted for amounts in one.amounts.values() for name in amounts})
    snapshot = keeper.latest.snapshot
    known = {
        uuid: shown.id
        for claim in wanted
        for uuid in claim.amounts
        if (row := snapshot.row_of_uuid.get(uuid)) is not None and (shown := snapshot.shown[row]) is not None
    }
    claims.write(req.world.writer, names, wanted, known=known, incomplete=req.world.settings.incomplete)


def replace_allocations(req: Request) -> None:
    """Replace everything one consumer holds."""
    consumer = req.path["consumer"]
    if not ids.is_uuid_like(consumer):
        raise BadRequest(f"Malformed consumer_uuid: {consumer}")
    _write(req, [claim(req, ids.canonical_uuid(consumer), req.body)])


def replace_many(req: Request) -> None:
    """Replace everything that each of several consumers holds, all or nothing."""
    _write(req, [claim(req, consumer, body) for consumer, body in by_uuid(req.body).items()])


def _consumer(req: Request) -> str:
    """The consumer in the path, in the form it was written in; whatever else it is names nobody."""
    consumer = req.path["consumer"]
    return ids.canonical_uuid(consumer) if ids.is_uuid_like(consumer) else consumer


def show_allocations(req: Request) -> Dated:
    """What one consumer holds; nothing for an unknown one."""
    uuid = _consumer(req)
    with req.world.database.read() as connection:
        found = reading.consumer(connection, uuid)
    if found is None:
        return Dated({"allocations": {}})
    return Dated(_shown(found, req), found.updated_at)


def _shown(consumer: Consumer, req: Request) -> dict[str, Any]:
    body: dict[str, Any] = {
        "allocations": {
            holding.uuid: {"resources": holding.resources, "generation": holding.generation}
            for holding in consumer.holdings
        }
    }
    if req.flag("owners"):
        body |= {"project_id": consumer.project_id, "user_id": consumer.user_id}
    if req.flag("generations"):
        body["consumer_generation"] = consumer.generation
    if req.flag("types"):
        body["consumer_type"] = consumer.consumer_type
    return body


def delete_allocations(req: Request) -> None:
    """Remove everything one consumer holds."""
    claims.release(req.world.writer, _consumer(req))


def provider_allocations(req: Request) -> Dated:
    """Who holds what of one provider."""
    with req.world.database.read() as connection:
        provider = providers.show(connection, provider_id(req))
        found = reading.holders(connection, provider.id)
    with_generation = req.flag("generations")
    allocations = {
        hold.consumer: {"resources": hold.resources}
        | ({"consumer_generation": hold.generation} if with_generation else {})
        for hold in found
    }
    body = {"allocations": allocations, "resource_provider_generation": provider.generation}
    return Dated(body, newest(hold.updated_at for hold in found))


_ONE = "/allocations/{consumer}"
_RULE = "placement:allocations:"

OPS = (
    Op("POST", "/allocations", replace_many, _RULE + "manage", body=REPLACE_MANY, ok=204, errors=(409,), since="1.13",
       flags=FLAGS),
    Op("GET", _ONE, show_allocations, _RULE + "list", flags=FLAGS),
    Op("PUT", _ONE, replace_allocations, _RULE + "update", body=REPLACE, ok=204, errors=(409,), flags=FLAGS),
    Op("DELETE", _ONE, delete_allocations, _RULE + "delete", ok=204),
    Op("GET", "/resource_providers/{uuid}/allocations", provider_allocations,
       "placement:resource_providers:allocations:list", flags=FLAGS),
)  # fmt: skip
