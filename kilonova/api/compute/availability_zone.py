"""/os-availability-zone: the zones there are, and in detail the services in them."""

from __future__ import annotations

from typing import Any

from kilonova.compute import availability
from kilonova.compute.availability import Zone
from kilonova.core import clock
from kilonova.http.fields import Query
from kilonova.http.op import Op, Request
from kilonova.http.views import Out, View

_RULE = "os_compute_api:os-availability-zone:"
NO_QUERY = Query(strict="2.102")


def _hosts(zone: Zone, req: Request) -> dict[str, Any] | None:
    if not zone.available:
        return None
    now, down_time = clock.utcnow(), req.world.settings.service_down_time
    return {
        host: {
            service.binary: {
                "available": service.up(now, down_time), "active": True, "updated_at": clock.raw(service.updated_at),
            }
            for service in found
        }
        for host, found in zone.hosts.items()
    }  # fmt: skip


ZONE = View(
    "availability zone",
    Out("zoneName", lambda zone, req: zone.name),
    Out("zoneState", lambda zone, req: {"available": zone.available}),
    Out("hosts", lambda zone, req: None, at={"index": "2.1"}),
    Out("hosts", _hosts, at={"detail": "2.1"}),
)


def index(req: Request) -> dict[str, Any]:
    """Names and states; the internal zone is hidden."""
    internal = req.world.settings.internal_service_availability_zone
    found = [zone for zone in availability.every_zone(req.world, req.ctx) if zone.name != internal]
    return {"availabilityZoneInfo": ZONE.many(found, req, "index")}


def detail(req: Request) -> dict[str, Any]:
    """All zones with their services."""
    return {"availabilityZoneInfo": ZONE.many(availability.every_zone(req.world, req.ctx), req, "detail")}


OPS: tuple[Op, ...] = (
    Op("GET", "/os-availability-zone", index, policy=_RULE + "list", query=NO_QUERY),
    Op("GET", "/os-availability-zone/detail", detail, policy=_RULE + "detail", query=NO_QUERY),
)
