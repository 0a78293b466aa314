"""Availability zones as users see them: which there are, with which hosts, and which are available."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kilonova.clients.identity import compute_zones
from kilonova.compute.over_cells import read_each
from kilonova.compute.world import World
from kilonova.core.context import Context
from kilonova.db.queries import services, zones
from kilonova.db.queries.services import Service

HIDDEN_SERVICES: Final = frozenset(("nova-osapi_compute", "nova-metadata"))
"""Binaries that no list shows (server view 6, 12)."""


@dataclass(frozen=True, slots=True)
class Zone:
    """A zone with its services by host. available: at least one of them is enabled."""

    name: str
    available: bool
    hosts: dict[str, list[Service]]


def zone_of_host(world: World, host: str | None) -> str | None:
    """The zone a host is in; the default zone for one that is in none; None without a host."""
    if host is None:
        return None
    return zones.of_host(world.cells.api, host) or world.settings.default_availability_zone


def kept_to(world: World, ctx: Context | None) -> frozenset[str]:
    """The zones that the caller's project is kept to (RestrictedZoneFilter); none for no restriction."""
    if ctx is None or not ctx.project_id or not world.settings.restrict_zones:
        return frozenset()
    return compute_zones(world.identity.project(ctx.project_id) or {})


def every_zone(world: World, ctx: Context | None = None) -> list[Zone]:
    """All zones, the internal one too, available ones first, each part by name (server-view 12). ctx: those that the
    caller's project is not kept to are not available.
    """
    kept = kept_to(world, ctx)
    zones = _every_zone(world)
    if not kept:
        return zones
    allowed = kept | {world.settings.internal_service_availability_zone}
    return sorted(
        (zone if zone.name in allowed else Zone(zone.name, False, {}) for zone in zones),
        key=lambda zone: (not zone.available, zone.name),
    )


def _every_zone(world: World) -> list[Zone]:
    by_host = zones.by_host(world.cells.api)
    settings = world.settings
    enabled: dict[str, dict[str, list[Service]]] = {}
    disabled: set[str] = set()
    for _, found in read_each(world, services.list_services):
        for service in found or ():
            if service.binary in HIDDEN_SERVICES:
                continue
            internal = service.binary != "nova-compute"
            zone = settings.internal_service_availability_zone if internal else by_host.get(
                service.host, settings.default_availability_zone)  # fmt: skip
            if service.disabled:
                disabled.add(zone)
            else:
                enabled.setdefault(zone, {}).setdefault(service.host, []).append(service)
    available = [Zone(name, True, hosts) for name, hosts in sorted(enabled.items())]
    return available + [Zone(name, False, {}) for name in sorted(disabled - set(enabled))]


def available_zones(world: World, ctx: Context | None = None) -> set[str]:
    """The zones a server may be asked to go to; by this caller, where one is named."""
    internal = world.settings.internal_service_availability_zone
    return {zone.name for zone in every_zone(world, ctx) if zone.available and zone.name != internal}
