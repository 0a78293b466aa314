"""Traits, and which a provider has."""

from __future__ import annotations

from kilonova.core import clock
from kilonova.http.fields import Arr, Field, Obj, Param, Query
from kilonova.http.op import Op, Request
from kilonova.placement.api.answers import GENERATION, NAME, Dated, newest, provider_id
from kilonova.placement.api.custom import custom_trait
from kilonova.placement.errors import BadRequest
from kilonova.placement.store import providers, traits
from kilonova.placement.store.names import Names

LIST = Query(
    (
        Param("name", words="in:A,B for some names, startswith:CUSTOM_ for those that start so."),
        Param("associated", words="true for traits that some provider has, false for those that none has."),
    ),
    strict=True,
)
REPLACE = Obj(
    Field("traits", Arr(NAME, unique=True), required=True),
    Field("resource_provider_generation", GENERATION, required=True),
)


def list_traits(req: Request) -> Dated:
    """Names, all or by `name=in:A,B`, `name=startswith:X`, `associated=true`."""
    names: Names = req.world.keeper.current().names
    found = [name for name in names.trait_ids if _named(name, req.query.get("name"))]
    if "associated" in req.query:
        if req.query["associated"].lower() not in ("true", "false"):
            raise BadRequest('The query parameter "associated" only accepts "true" or "false"')
        with req.world.database.read() as connection:
            used = traits.associated(connection)
        found = [name for name in found if (name in used) == (req.query["associated"].lower() == "true")]
    return Dated({"traits": found}, newest(names.trait_stamps[name] for name in found))


def _named(name: str, wanted: str | None) -> bool:
    if wanted is None:
        return True
    if wanted.startswith("startswith:"):
        return name.startswith(wanted.removeprefix("startswith:"))
    if wanted.startswith("in:"):
        return name in wanted.removeprefix("in:").split(",")
    raise BadRequest(
        "Badly formatted name parameter. Expected name query string parameter in form: "
        f'?name=[in|startswith]:[name1,name2|prefix]. Got: "{wanted}"'
    )


def show_trait(req: Request) -> Dated:
    """204 when there is such a trait."""
    return Dated(None, traits.stamp(req.world.keeper.current().names, req.path["name"]))


def create_trait(req: Request) -> Dated:
    """Make a custom trait: 201 new, 204 there already."""
    name = custom_trait(req)
    fresh = req.world.writer.run(lambda tx: traits.create(tx, name))
    where = (("Location", f"{req.base_url}/traits/{name}"),)
    return Dated(None, clock.utcnow(), 201 if fresh else 204, where)


def delete_trait(req: Request) -> None:
    """Remove a custom trait that no provider has."""
    req.world.writer.run(lambda tx: traits.delete(tx, req.path["name"]))


def provider_traits(req: Request) -> Dated:
    """The traits of one provider."""
    with req.world.database.read() as connection:
        provider = providers.show(connection, provider_id(req))
        found = traits.of(connection, provider.id)
    return Dated({"traits": found, "resource_provider_generation": provider.generation}, provider.updated_at)


def replace_provider_traits(req: Request) -> Dated:
    """Make the provider have exactly these."""
    wanted: list[str] = req.body["traits"]
    names: Names = req.world.keeper.names(traits=wanted)
    generation = req.world.writer.run(
        lambda tx: traits.replace(tx, provider_id(req), req.body["resource_provider_generation"], wanted, names)
    )
    found = sorted(wanted, key=lambda name: names.trait_ids[name])
    return Dated({"traits": found, "resource_provider_generation": generation})


def delete_provider_traits(req: Request) -> None:
    """Take all traits from the provider."""
    names = req.world.keeper.names()
    req.world.writer.run(lambda tx: traits.replace(tx, provider_id(req), None, (), names))


_OF = "/resource_providers/{uuid}/traits"

OPS = (
    Op("GET", "/traits", list_traits, "placement:traits:list", query=LIST, since="1.6"),
    Op("GET", "/traits/{name}", show_trait, "placement:traits:show", ok=204, since="1.6"),
    Op("PUT", "/traits/{name}", create_trait, "placement:traits:update", ok=201, errors=(204,), since="1.6"),
    Op("DELETE", "/traits/{name}", delete_trait, "placement:traits:delete", ok=204, errors=(409,), since="1.6"),
    Op("GET", _OF, provider_traits, "placement:resource_providers:traits:list", since="1.6"),
    Op("PUT", _OF, replace_provider_traits, "placement:resource_providers:traits:update", body=REPLACE,
       errors=(409,), since="1.6"),
    Op("DELETE", _OF, delete_provider_traits, "placement:resource_providers:traits:delete", ok=204, errors=(409,),
       since="1.6"),
)  # fmt: skip
