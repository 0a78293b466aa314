"""Resource providers: list, create, show, update, delete."""

from __future__ import annotations

from typing import Any

from kilonova.core import ids
from kilonova.http.fields import UUID, Field, Obj, Param, Query, nullable
from kilonova.http.op import Op, Request
from kilonova.http.versions import Since
from kilonova.http.views import Out, View
from kilonova.placement.api import filters
from kilonova.placement.api.answers import Dated, newest, provider_id, provider_of, words
from kilonova.placement.store import providers
from kilonova.placement.store.providers import Provider

NAME = words(200)
CREATE = Obj(
    Field("name", NAME, required=True),
    Field("uuid", UUID),
    Field("parent_provider_uuid", nullable(UUID), since="1.14"),
)
UPDATE = Obj(Field("name", NAME, required=True), Field("parent_provider_uuid", nullable(UUID), since="1.14"))
LIST = Query(
    (
        Param("name", words="The provider of this name."),
        Param("uuid", UUID, words="The provider of this UUID."),
        Param("member_of", many=True, since="1.3", words=filters.MEMBER_OF),
        Param("resources", since="1.4", words="Amounts to have room for: VCPU:2,MEMORY_MB:512."),
        Param("in_tree", UUID, since="1.14", words="The UUID of a provider of the tree to list."),
        Param("required", many=True, since="1.18", words=filters.REQUIRED),
    ),
    strict=True,
)
FLAGS = filters.FLAGS

_LINKS = (("self", "", None), ("inventories", "/inventories", None), ("usages", "/usages", None),
          ("aggregates", "/aggregates", (1, 1)), ("traits", "/traits", (1, 6)),
          ("allocations", "/allocations", (1, 11)))  # fmt: skip


def _links(provider: Provider, req: Request) -> list[dict[str, str]]:
    here = f"{req.environ.get('SCRIPT_NAME', '')}/resource_providers/{provider.uuid}"
    return [
        {"rel": rel, "href": here + path}
        for rel, path, since in _LINKS
        if since is None or req.version is None or req.version >= since
    ]


VIEW = View(
    "resource_provider",
    Out("uuid", lambda provider, req: provider.uuid),
    Out("name", lambda provider, req: provider.name),
    Out("generation", lambda provider, req: provider.generation),
    Out("links", _links),
    Out("parent_provider_uuid", lambda provider, req: provider.parent_uuid, since="1.14"),
    Out("root_provider_uuid", lambda provider, req: provider.root_uuid, since="1.14"),
)


def list_providers(req: Request) -> Dated:
    """The providers that pass every filter given."""
    found = filters.providers(req)
    return Dated({"resource_providers": VIEW.many(found, req)}, newest(one.updated_at for one in found))


def create_provider(req: Request) -> Dated:
    """A new provider: 201 without a body before 1.20, 200 with it from then on."""
    uuid = ids.canonical_uuid(req.body["uuid"]) if "uuid" in req.body else ids.new_uuid()
    parent = _canonical(req.body.get("parent_provider_uuid"))
    made = req.world.writer.run(lambda tx: providers.create(tx, uuid, req.body["name"], parent))
    headers = (("Location", f"{req.base_url}/resource_providers/{uuid}"),)
    body = VIEW.one(made, req) if req.flag("answers_provider") else None
    return Dated(body, made.updated_at, headers=headers)


def show_provider(req: Request) -> Dated:
    """One provider."""
    with req.world.database.read() as connection:
        found = providers.show(connection, provider_id(req))
    return Dated(VIEW.one(found, req), found.updated_at)


def update_provider(req: Request) -> Dated:
    """Another name, or another place in a tree."""
    place = (_canonical(req.body["parent_provider_uuid"]),) if "parent_provider_uuid" in req.body else None
    changed = req.world.writer.run(
        lambda tx: providers.update(
            tx, provider_id(req), req.body["name"], parent=place, reparenting=req.flag("reparenting")
        )
    )
    return Dated(VIEW.one(changed, req), changed.updated_at)


def delete_provider(req: Request) -> None:
    """A provider that nothing is allocated from, and its inventory."""
    req.world.writer.run(lambda tx: providers.delete(tx, provider_id(req)))


def _canonical(uuid: Any) -> str | None:
    return None if uuid is None else ids.canonical_uuid(uuid)


OPS = (
    Op("GET", "/resource_providers", list_providers, "placement:resource_providers:list", query=LIST, flags=FLAGS),
    Op("POST", "/resource_providers", create_provider, "placement:resource_providers:create", body=CREATE,
       ok=Since(201, ("1.20", 200)), errors=(409,), flags={"answers_provider": "1.20"}),
    Op("GET", "/resource_providers/{uuid}", show_provider, "placement:resource_providers:show"),
    Op("PUT", "/resource_providers/{uuid}", update_provider, "placement:resource_providers:update",
       target=provider_of, policy_first=True, body=UPDATE, errors=(409,), flags={"reparenting": "1.37"}),
    Op("DELETE", "/resource_providers/{uuid}", delete_provider, "placement:resource_providers:delete", ok=204,
       errors=(409,)),
)  # fmt: skip
