"""Aggregates of a provider: a plain list before 1.19, an object with the generation from then on."""

from __future__ import annotations

from typing import Any

from kilonova.core import ids
from kilonova.http.fields import UUID, Arr, Field, Obj, Type
from kilonova.http.op import Op, Request
from kilonova.http.versions import Since
from kilonova.placement.api.answers import GENERATION, Dated, provider_id, provider_of
from kilonova.placement.store import aggregates, providers

_LIST = Arr(UUID, unique=True)
REPLACE: Since[Type | None] = Since(
    _LIST,
    ("1.19", Obj(Field("aggregates", _LIST, required=True),
                 Field("resource_provider_generation", GENERATION, required=True))),
)  # fmt: skip
FLAGS = {"generations": "1.19"}


def _shown(req: Request, found: list[str], generation: int) -> dict[str, Any]:
    body: dict[str, Any] = {"aggregates": found}
    return body | {"resource_provider_generation": generation} if req.flag("generations") else body


def list_aggregates(req: Request) -> Dated:
    """The aggregates that the provider is in."""
    with req.world.database.read() as connection:
        provider = providers.show(connection, provider_id(req))
        found = aggregates.of(connection, provider.id)
    return Dated(_shown(req, found, provider.generation))


def replace_aggregates(req: Request) -> Dated:
    """Make the provider be in exactly these."""
    compare = req.flag("generations")
    given = req.body["aggregates"] if compare else req.body
    wanted = list(dict.fromkeys(ids.canonical_uuid(uuid) for uuid in given))
    expected = req.body["resource_provider_generation"] if compare else None
    generation = req.world.writer.run(
        lambda tx: aggregates.replace(tx, provider_id(req), wanted, compare=compare, generation=expected)
    )
    return Dated(_shown(req, wanted, generation))


_PATH = "/resource_providers/{uuid}/aggregates"
_RULE = "placement:resource_providers:aggregates:"

OPS = (
    Op("GET", _PATH, list_aggregates, _RULE + "list", since="1.1", flags=FLAGS),
    Op("PUT", _PATH, replace_aggregates, _RULE + "update", target=provider_of, policy_first=True, body=REPLACE,
       errors=(409,), since="1.1", flags=FLAGS),
)  # fmt: skip
