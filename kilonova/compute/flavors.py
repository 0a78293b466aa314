"""Flavors: who may see which, and which a server may be made of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kilonova.compute.world import World
from kilonova.core import ids
from kilonova.core.context import Context
from kilonova.core.errors import Conflict, Invalid, NotFound
from kilonova.core.request_spec import FlavorSpec
from kilonova.db.queries import flavors
from kilonova.db.queries.flavors import FlavorFilter as FlavorFilter
from kilonova.sql.engine import Connection


class FlavorNotFound(NotFound):
    """There is no such flavor, or it is not the caller's to see."""

    code, message = "flavor_not_found", "Flavor {flavor} could not be found."


class FlavorUnusable(Invalid):
    """The flavor of a request for a server is not there, or is disabled."""

    code, message = "flavor_unusable", "Flavor {flavor} {why}."


class FlavorExists(Conflict):
    """The name or the id is taken."""

    code, message = "flavor_exists", "Flavor with {what} {value} already exists."


class FlavorMarkerNotFound(Invalid):
    """The marker is no flavor."""

    code, message = "marker_not_found", "Marker {marker} could not be found."


class SpecNotFound(NotFound):
    """The flavor has no such extra spec."""

    code, message = "spec_not_found", "Flavor {flavor} has no extra specs with key {key}."


class AccessExists(Conflict):
    """The project may use the flavor already."""

    code, message = "access_exists", "Flavor access already exists for flavor {flavor} and project {project}."


class AccessNotFound(NotFound):
    """The project has no grant, or the flavor is everybody's."""

    code, message = "access_not_found", "Flavor access not found for {flavor} / {project} combination."


class AccessToPublic(Conflict):
    """A public flavor needs no grants (2.7)."""

    code, message = "access_to_public", "Can not add access to a public flavor."


class ProjectUnknown(Invalid):
    """The identity service has no such project."""

    code, message = "project_unknown", "Project ID {project} is not a valid project."


def for_boot(world: World, ctx: Context, reference: str | int) -> FlavorSpec:
    """The flavor that a server is to be made of. A URL is read by its last segment (microversions.md 1)."""
    flavorid = str(reference).rstrip("/").rpartition("/")[2]
    found = flavors.get(world.cells.api, flavorid)
    if found is None or not visible(world, ctx, found):
        raise FlavorUnusable(flavor=flavorid, why="could not be found")
    if found.disabled:
        raise FlavorUnusable(flavor=flavorid, why="is disabled")
    return found


def visible(world: World, ctx: Context, flavor: FlavorSpec) -> bool:
    """Whether the caller may use a flavor: it is public, granted to the project, or the caller is an administrator."""
    if flavor.is_public or ctx.is_admin:
        return True
    return ctx.project_id in flavors.projects_of(world.cells.api, flavor.id)


def find(world: World, ctx: Context, flavorid: str) -> FlavorSpec:
    """A flavor that the caller may see. FlavorNotFound."""
    found = flavors.get(world.cells.api, flavorid)
    if found is None or not visible(world, ctx, found):
        raise FlavorNotFound(flavor=flavorid)
    return found


def page(world: World, ctx: Context, wanted: FlavorFilter, limit: int, marker: str | None) -> list[FlavorSpec]:
    """A page of the flavors that match. FlavorMarkerNotFound."""
    after = None
    if marker is not None:
        after = flavors.get(world.cells.api, marker)
        if after is None:
            raise FlavorMarkerNotFound(marker=marker)
    return flavors.page(world.cells.api, wanted, limit, after) if limit else []


def create(world: World, ctx: Context, values: Mapping[str, Any]) -> FlavorSpec:
    """Add a flavor of columns; an id is made up when none is given. A private one is granted to its maker's project."""
    row = dict(values)
    row["flavorid"] = row.get("flavorid") or ids.new_uuid()
    try:
        with world.cells.api.write() as connection:
            number = flavors.insert(connection, row)
            if not row.get("is_public", True):
                flavors.grant(connection, number, ctx.project_id)
    except Exception as error:
        if not flavors.taken(error):
            raise
        known = flavors.get(world.cells.api, row["flavorid"])
        what, value = ("ID", row["flavorid"]) if known else ("name", row["name"])
        raise FlavorExists(what=what, value=value) from None
    return find(world, ctx, row["flavorid"])


def describe(world: World, ctx: Context, flavor: FlavorSpec, text: str | None) -> FlavorSpec:
    """Change the description."""
    with world.cells.api.write() as connection:
        flavors.describe(connection, flavor.id, text)
    return find(world, ctx, flavor.flavorid)


def delete(world: World, flavor: FlavorSpec) -> None:
    """Remove a flavor; servers keep their copy."""
    with world.cells.api.write() as connection:
        flavors.delete(connection, flavor.id)


def set_specs(world: World, flavor: FlavorSpec, specs: Mapping[str, Any]) -> None:
    """Set some extra specs; values are stored as text. FlavorNotFound when it was deleted meanwhile."""
    with world.cells.api.write() as connection:
        _keep(connection, flavor)
        flavors.set_specs(connection, flavor.id, {key: str(value) for key, value in specs.items()})


def _keep(connection: Connection, flavor: FlavorSpec) -> None:
    if not flavors.keep(connection, flavor.id):
        raise FlavorNotFound(flavor=flavor.flavorid)


def drop_spec(world: World, flavor: FlavorSpec, key: str) -> None:
    """Remove an extra spec. SpecNotFound."""
    with world.cells.api.write() as connection:
        if not flavors.drop_spec(connection, flavor.id, key):
            raise SpecNotFound(flavor=flavor.flavorid, key=key)


def access(world: World, flavor: FlavorSpec) -> list[str]:
    """The projects a private flavor is granted to. AccessNotFound for a public one."""
    if flavor.is_public:
        raise AccessNotFound("Access list not available for public flavors.")
    return flavors.projects_of(world.cells.api, flavor.id)


def grant(world: World, flavor: FlavorSpec, project: str, *, refuse_public: bool) -> list[str]:
    """Let a project use a flavor; answers all grants. ProjectUnknown, AccessToPublic, AccessExists."""
    if refuse_public and flavor.is_public:
        raise AccessToPublic
    if not world.identity.project_exists(project):
        raise ProjectUnknown(project=project)
    try:
        with world.cells.api.write() as connection:
            _keep(connection, flavor)
            flavors.grant(connection, flavor.id, project)
    except Exception as error:
        if not flavors.taken(error):
            raise
        raise AccessExists(flavor=flavor.flavorid, project=project) from None
    return flavors.projects_of(world.cells.api, flavor.id)


def revoke(world: World, flavor: FlavorSpec, project: str) -> list[str]:
    """Take a grant back; answers those that are left. AccessNotFound."""
    with world.cells.api.write() as connection:
        if not flavors.revoke(connection, flavor.id, project):
            raise AccessNotFound(flavor=flavor.flavorid, project=project)
    return flavors.projects_of(world.cells.api, flavor.id)
