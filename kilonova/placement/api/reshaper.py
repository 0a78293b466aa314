"""Inventories and allocations moved between providers in one request."""

from __future__ import annotations

from kilonova.http.fields import Field, Map, Obj
from kilonova.http.op import Op, Request
from kilonova.placement.api import allocations, inventories
from kilonova.placement.api.answers import CLASS_NAME_PATTERN, GENERATION, UUID_PATTERN, by_uuid
from kilonova.placement.policy import RESHAPE
from kilonova.placement.store import reshape
from kilonova.placement.store.reshape import Stock

BODY = Obj(
    Field(
        "inventories",
        Map(
            UUID_PATTERN,
            Obj(
                Field("resource_provider_generation", GENERATION, required=True),
                Field("inventories", Map(CLASS_NAME_PATTERN, inventories.RECORD), required=True),
            ),
            1,
        ),
        required=True,
    ),
    Field("allocations", Map(UUID_PATTERN, allocations.CONSUMER), required=True),
)
FLAGS = inventories.FLAGS | allocations.FLAGS


def reshape_providers(req: Request) -> None:
    """Replace whole inventories of providers and allocations of consumers, all or nothing."""
    stocks = {
        uuid: Stock(
            body["resource_provider_generation"],
            {name: inventories.read(req, uuid, name, record) for name, record in body["inventories"].items()},
        )
        for uuid, body in by_uuid(req.body["inventories"]).items()
    }
    wanted = [allocations.claim(req, consumer, body) for consumer, body in by_uuid(req.body["allocations"]).items()]
    names = req.world.keeper.current().names
    reshape.reshape(req.world.writer, names, stocks, wanted, req.world.settings.incomplete)


OPS = (
    Op("POST", "/reshaper", reshape_providers, RESHAPE, body=BODY, ok=204, errors=(409,), since="1.30", flags=FLAGS),
)
