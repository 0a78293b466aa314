"""Flavors: who may see which, and which a server may be made of."""

from __future__ import annotations

from kilonova.compute.world import World
from kilonova.core.context import Context
from kilonova.core.errors import Invalid, NotFound
from kilonova.core.request_spec import FlavorSpec
from kilonova.db.queries import flavors


class FlavorNotFound(NotFound):
    """There is no such flavor."""

    code, message = "flavor_not_found", "Flavor {flavor} could not be found."


class FlavorUnusable(Invalid):
    """The flavor of a request for a server is not there, or is disabled."""

    code, message = "flavor_unusable", "Flavor {flavor} {why}."


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
