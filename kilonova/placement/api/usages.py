"""How much is in use: of one provider, and by one project."""

from __future__ import annotations

from typing import Any

from kilonova.http.fields import Param, Query, Str
from kilonova.http.op import Op, Request
from kilonova.placement.api.answers import Dated, provider_id
from kilonova.placement.errors import BadRequest
from kilonova.placement.policy import USAGES
from kilonova.placement.store import providers, reading
from kilonova.placement.store.reading import Usage

ALL = "all"

QUERY = Query(
    (
        Param("project_id", Str(1, 255), words="The project asked about; compulsory."),
        Param("user_id", Str(1, 255), words="One user of it."),
        Param("consumer_type", Str(1, 255, pattern="^([A-Z0-9_]+|all|unknown)$"), since="1.38",
              words="One type of consumer; all for the sum of all, unknown for consumers without a type."),
    ),
    strict=True,
)  # fmt: skip


def provider_usages(req: Request) -> Dated:
    """Use by class of one provider."""
    with req.world.database.read() as connection:
        provider = providers.show(connection, provider_id(req))
        usages = reading.provider_usage(connection, provider.id)
    return Dated({"resource_provider_generation": provider.generation, "usages": usages})


def project(req: Request) -> dict[str, Any]:
    """The project asked about, for the policy."""
    if "project_id" not in req.query:
        raise BadRequest("Invalid query string parameters: 'project_id' is a required property")
    return {"project_id": req.query["project_id"]}


def project_usages(req: Request) -> Dated:
    """Use by class of a project or one of its users, by consumer type from 1.38 on."""
    with req.world.database.read() as connection:
        found = reading.project_usages(connection, req.query["project_id"], req.query.get("user_id"))
    if not req.flag("types"):
        return Dated({"usages": reading.merged(list(found.values())).resources})
    return Dated({"usages": {name: _bucket(usage) for name, usage in _chosen(found, req).items()}})


def _chosen(found: dict[str, Usage], req: Request) -> dict[str, Usage]:
    wanted = req.query.get("consumer_type")
    if wanted == ALL:
        return {ALL: reading.merged(list(found.values()))} if found else {}
    return found if wanted is None else {name: usage for name, usage in found.items() if name == wanted}


def _bucket(usage: Usage) -> dict[str, int]:
    return {"consumer_count": usage.consumers, **usage.resources}


OPS = (
    Op("GET", "/resource_providers/{uuid}/usages", provider_usages, "placement:resource_providers:usages"),
    Op("GET", "/usages", project_usages, USAGES, target=project, query=QUERY, since="1.9", flags={"types": "1.38"}),
)
