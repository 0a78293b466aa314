"""Where a server is asked to go: availability zone, forced host, requested destination."""

from __future__ import annotations

from dataclasses import dataclass

from kilonova.compute.availability import available_zones
from kilonova.compute.world import World
from kilonova.core.context import Context
from kilonova.core.errors import Forbidden, Invalid
from kilonova.core.request_spec import Destination
from kilonova.db.queries import compute_nodes


class ZoneInvalid(Invalid):
    """A zone that is not there, or is written wrongly."""

    code, message = "zone_invalid", "{why}"


class ForcedHostForbidden(Forbidden):
    """zone:host needs a right of its own."""

    code = "forced_host_forbidden"
    message = "Policy doesn't allow os_compute_api:servers:create:forced_host to be performed."


@dataclass(frozen=True, slots=True)
class Placed:
    """The zone (None: any), and the hosts it is tied to."""

    zone: str | None = None
    force_hosts: tuple[str, ...] = ()
    force_nodes: tuple[str, ...] = ()
    destination: Destination | None = None


def resolve(
    world: World, asked: str | None, host: str | None, node: str | None, *, may_force: bool, ctx: Context | None = None
) -> Placed:  # fmt: skip
    """What `availability_zone` (`zone`, `zone:host`, `zone:host:node`, `zone::node`) and host, node mean.

    A forced host skips the filters and the check of the zone; a requested host does not (errors.md 12).
    """
    zone, forced_host, forced_node = _split(asked)
    if forced_host or forced_node:
        if not may_force:
            raise ForcedHostForbidden
        if host or node:
            raise ZoneInvalid(why="A host cannot be given both in the availability zone and as host or node.")
        return Placed(zone or None, _one(forced_host), _one(forced_node))
    if host or node:
        _check_host(world, host, node)
    zone = zone or world.settings.default_schedule_zone
    if zone and zone not in available_zones(world, ctx):
        raise ZoneInvalid(why="The requested availability zone is not available")
    destination = Destination(host=host, node=node) if host or node else None
    return Placed(zone or None, destination=destination)


def _split(asked: str | None) -> tuple[str | None, str | None, str | None]:
    if not asked:
        return None, None, None
    parts = asked.split(":")
    if len(parts) > 3:
        raise ZoneInvalid(why="Invalid availability_zone format")
    zone, host, node = [*parts, "", ""][:3]
    return zone, host or None, node or None


def _one(name: str | None) -> tuple[str, ...]:
    return (name,) if name else ()


def _check_host(world: World, host: str | None, node: str | None) -> None:
    for cell in world.cells:
        with cell.database.read() as connection:
            found = compute_nodes.nodes_of(connection, [host]) if host else compute_nodes.named(connection, node or "")
        if any(node in (None, row.hypervisor_hostname) for row in found):
            return
    raise ZoneInvalid(why=f"Compute host {host or node} could not be found.")
