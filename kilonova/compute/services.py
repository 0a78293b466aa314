"""Compute services as the administrator sees them: listed, taken out of use, fenced, removed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from kilonova.cells.cells import Cell
from kilonova.compute import aggregates, hosts
from kilonova.compute.availability import HIDDEN_SERVICES
from kilonova.compute.hosts import HostNotFound
from kilonova.compute.over_cells import read_each
from kilonova.compute.world import World
from kilonova.core import clock, ids
from kilonova.core.errors import Conflict, Invalid
from kilonova.db.queries import compute_nodes, host_use, services, zones
from kilonova.db.queries import hosts as host_rows
from kilonova.db.queries.hosts import COMPUTE
from kilonova.db.queries.services import Service, ServiceNotFound


class ServiceIdInvalid(Invalid):
    """The id in the path is none at this version."""

    code, message = "service_id_invalid", "Invalid service id {value!r}: it must be {what}."


class ServiceIdAmbiguous(Invalid):
    """Several cells have a service of that number."""

    code, message = "service_id_ambiguous", "Service id {value} is not unique; use its UUID with version 2.53 or later."


class NotCompute(Invalid):
    """Only compute services can be changed."""

    code, message = "not_compute", "Updating a {binary} service is not supported; only nova-compute services are."


class NothingToUpdate(Invalid):
    """The request changes nothing."""

    code = "nothing_to_update"
    message = "No updates were requested. At least one of status and forced_down has to be given."


class ReasonWithoutDisabling(Invalid):
    """A reason goes with disabling only."""

    code, message = "reason_without_disabling", "A disabled_reason can only be given with status disabled."


class EvacuationsPending(Invalid):
    """The host has not cleaned up after an evacuation."""

    code = "evacuations_pending"
    message = "Service on host {host} still has evacuations to clean up after; start the service there first."


class ServiceInUse(Conflict):
    """Something on the host stands against its removal."""

    code, message = "service_in_use", "Unable to delete the compute service on host {host}: it has {what}."


@dataclass(frozen=True, slots=True)
class Listed:
    """A service with its zone and whether it is up. service: None for one whose cell does not answer."""

    binary: str
    host: str
    zone: str = ""
    up: bool = False
    service: Service | None = None


def every(world: World, host: str | None = None, binary: str | None = None) -> list[Listed]:
    """The services of all cells by exact host and binary, and a bare record for each host of a cell that is down."""
    of_host = zones.by_host(world.cells.api)
    listed: list[Listed] = []
    for cell, found in read_each(world, partial(services.list_services, host=host, binary=binary)):
        if found is None:
            listed += _unknown(world, cell, host, binary)
            continue
        listed += [_listed(world, service, of_host) for service in found if service.binary not in HIDDEN_SERVICES]
    return listed


def _unknown(world: World, cell: Cell, host: str | None, binary: str | None) -> list[Listed]:
    if binary not in (None, COMPUTE):
        return []
    with world.cells.api.read() as connection:
        mapped = host_rows.list_mappings(connection)
    return [Listed(COMPUTE, name) for name, uuid in mapped if uuid == cell.uuid and host in (None, name)]


def _listed(world: World, service: Service, of_host: dict[str, str]) -> Listed:
    settings = world.settings
    zone = settings.internal_service_availability_zone
    if service.binary == COMPUTE:
        zone = of_host.get(service.host, settings.default_availability_zone)
    up = service.up(clock.utcnow(), settings.service_down_time)
    return Listed(service.binary, service.host, zone, up, service)


def listed(world: World, service: Service) -> Listed:
    """One service as lists show it."""
    return _listed(world, service, zones.by_host(world.cells.api))


# -- finding one


def by_uuid(world: World, text: str) -> tuple[Service, Cell]:
    """A service by its UUID. ServiceIdInvalid, ServiceNotFound."""
    if not ids.is_uuid_like(text):
        raise ServiceIdInvalid(value=text, what="a UUID")
    return _only(_with_key(world, ids.canonical_uuid(text)), text)


def by_number(world: World, text: str) -> tuple[Service, Cell]:
    """A service by its number. ServiceIdInvalid, ServiceIdAmbiguous, ServiceNotFound."""
    if not (text.isascii() and text.isdigit()):
        raise ServiceIdInvalid(value=text, what="a whole number")
    return _only(_with_key(world, int(text)) if len(text) < 10 else [], text)


def _with_key(world: World, key: str | int) -> list[tuple[Service, Cell]]:
    return [(found, cell) for cell, found in read_each(world, partial(services.get_service, key=key)) if found]


def _only(found: list[tuple[Service, Cell]], text: str) -> tuple[Service, Cell]:
    if not found:
        raise ServiceNotFound(service=text)
    if len(found) > 1:
        raise ServiceIdAmbiguous(value=text)
    return found[0]


def on_host(world: World, host: str, binary: str) -> tuple[Service, Cell]:
    """The service of a binary on a host. HostNotFound, NotCompute."""
    if binary != COMPUTE:
        raise NotCompute(binary=binary)
    for cell, found in read_each(world, partial(services.list_services, host=host, binary=binary)):
        if found:
            return found[0], cell
    raise HostNotFound(host=host)


# -- changes


def set_status(world: World, service: Service, cell: Cell, *, enabled: bool, reason: str | None = None) -> None:
    """Put a compute service in use or out of use: no new servers then; those that are there go on. NotCompute."""
    _compute_only(service)
    with cell.database.write() as connection:
        services.set_disabled(connection, service.id, disabled=not enabled, reason=reason)
    _tell(world, service.host)


def set_forced_down(world: World, service: Service, cell: Cell, *, forced_down: bool) -> None:
    """Say that a host is fenced and counts as down, or that it is back. NotCompute, EvacuationsPending."""
    _compute_only(service)
    with cell.database.write() as connection:
        if not forced_down and service.forced_down and host_use.was_evacuated(connection, service.host):
            raise EvacuationsPending(host=service.host)
        services.set_forced_down(connection, service.id, forced_down=forced_down)
    _tell(world, service.host)


def update(
    world: World, service: Service, cell: Cell, status: str | None, reason: str | None, forced_down: bool | None
) -> Listed:
    """Status (enabled, disabled) and forced_down in one request; None leaves it as it is.

    ReasonWithoutDisabling, NothingToUpdate, NotCompute, EvacuationsPending.
    """
    _compute_only(service)
    if reason is not None and status == "enabled":
        raise ReasonWithoutDisabling
    if status is None and forced_down is None:
        raise NothingToUpdate
    if forced_down is not None:
        set_forced_down(world, service, cell, forced_down=forced_down)
    if status is not None:
        set_status(world, service, cell, enabled=status == "enabled", reason=reason)
    with cell.database.read() as connection:
        return listed(world, services.show_service(connection, service.uuid))


def _compute_only(service: Service) -> None:
    if service.binary != COMPUTE:
        raise NotCompute(binary=service.binary)


def _tell(world: World, host: str) -> None:
    hosts.tell_scheduler(world, [host])
    hosts.refresh(world, host)


def delete(world: World, service: Service, cell: Cell) -> None:
    """Forget a service. A compute host leaves its aggregates, placement and its cell with it. ServiceInUse."""
    host = service.host
    if service.binary != COMPUTE:
        with cell.database.write() as connection:
            services.delete_service(connection, service)
        return
    _not_in_use(cell, host)
    for aggregate in aggregates.of_host(world, host):
        aggregates.leave(world, aggregate, host)
    with cell.database.write() as connection:
        nodes = compute_nodes.nodes_of(connection, [host])
        services.delete_service(connection, service)
        compute_nodes.delete_node(connection, host)
    for node in nodes:
        hosts.remove_provider(world, node.uuid)
    with world.cells.api.write() as connection:
        host_rows.unmap_host(connection, host)
    hosts.tell_scheduler(world, [host])


def _not_in_use(cell: Cell, host: str) -> None:
    with cell.database.read() as connection:
        if host_use.busy_hosts(connection, [host]):
            raise ServiceInUse(host=host, what="servers")
        if host_use.is_moving(connection, host):
            raise ServiceInUse(host=host, what="migrations in progress")
