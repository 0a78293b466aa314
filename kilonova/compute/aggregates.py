"""Host aggregates and the availability zones that they make.

A host is in one zone at most, and a change must not move the servers on it to another zone. Membership is mirrored to
placement, whose aggregates have the same uuids; the scheduler is told.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from kilonova.clients.placement import ProviderConflict, ProviderNotFound
from kilonova.compute import hosts
from kilonova.compute.world import World
from kilonova.core import ids
from kilonova.core.errors import Conflict, Invalid, KilonovaError, NotFound
from kilonova.db.queries import aggregates
from kilonova.db.queries.aggregates import ZONE, Aggregate
from kilonova.sql.engine import Connection

LOG = logging.getLogger(__name__)


class AggregateNotFound(NotFound):
    """There is no such aggregate."""

    code, message = "aggregate_not_found", "Aggregate {aggregate} could not be found."


class AggregateIdInvalid(Invalid):
    """The id in the path is no number."""

    code, message = "aggregate_id_invalid", "Invalid aggregate id {value!r}: it must be a whole number."


class AggregateExists(Conflict):
    """The name is taken."""

    code, message = "aggregate_exists", "Aggregate {name} already exists."


class AggregateHasHosts(Invalid):
    """It is not empty, so it stays."""

    code, message = "aggregate_has_hosts", "Cannot delete aggregate {aggregate}: it has hosts ({hosts})."


class HostInAggregate(Conflict):
    """The host is a member already."""

    code, message = "host_in_aggregate", "Aggregate {aggregate} already has host {host}."


class HostNotInAggregate(NotFound):
    """The host is no member."""

    code, message = "host_not_in_aggregate", "Aggregate {aggregate} has no host {host}."


class ZoneConflict(Conflict):
    """A host would be in two zones, or its servers in another one. (A change of metadata answers 400.)"""

    code, message = "zone_conflict", "Cannot {what}: {why}."


class ZoneEmpty(Invalid):
    """A zone needs a name."""

    code, message = "zone_empty", "Aggregate {aggregate} does not support an empty availability zone."


def every(world: World) -> list[Aggregate]:
    """All aggregates, oldest first."""
    return aggregates.every(world.cells.api)


def number_of(text: str) -> int:
    """The number in a path. AggregateIdInvalid."""
    if not (text.isascii() and text.isdigit()):
        raise AggregateIdInvalid(value=text)
    return int(text) if len(text) < 10 else 0  # none has more digits, and a database may refuse to look for it


def find(world: World, number: int) -> Aggregate:
    """One aggregate. AggregateNotFound."""
    found = aggregates.get(world.cells.api, number)
    if found is None:
        raise AggregateNotFound(aggregate=number)
    return found


def create(world: World, name: str, zone: str | None) -> Aggregate:
    """Add an aggregate, one that is a zone where `zone` is given. AggregateExists."""
    try:
        with world.cells.api.write() as connection:
            number = aggregates.insert(connection, ids.new_uuid(), name)
            if zone is not None:
                aggregates.set_metadata(connection, number, {ZONE: zone})
    except Exception as error:
        if not aggregates.taken(error):
            raise
        raise AggregateExists(name=name) from None
    return find(world, number)


def update(world: World, aggregate: Aggregate, name: str | None, changes: Mapping[str, str | None]) -> Aggregate:
    """Rename it and set metadata. AggregateExists, ZoneEmpty, ZoneConflict."""
    zone, what = changes.get(ZONE), f"update aggregate {aggregate.name}"
    if ZONE in changes:
        if not zone:
            raise ZoneEmpty(aggregate=aggregate.name)
        _servers_stay(world, aggregate, zone, aggregate.hosts, what)
    try:
        with world.cells.api.write() as connection:
            current = _locked(connection, aggregate.id)
            if zone:
                _one_zone(connection, current, zone, current.hosts, what)
            if name is not None and name != current.name:
                aggregates.rename(connection, aggregate.id, name)
            aggregates.set_metadata(connection, aggregate.id, changes)
    except Exception as error:
        if not aggregates.taken(error):
            raise
        raise AggregateExists(name=name) from None
    hosts.tell_scheduler(world, aggregate.hosts)
    return find(world, aggregate.id)


def delete(world: World, aggregate: Aggregate) -> None:
    """Remove an aggregate without hosts. AggregateHasHosts."""
    with world.cells.api.write() as connection:
        if not aggregates.delete(connection, aggregate.id):
            raise AggregateHasHosts(aggregate=aggregate.name, hosts=", ".join(aggregate.hosts))


def add_host(world: World, number: int, host: str) -> Aggregate:
    """Take a host in. HostNotFound (which is looked at first), AggregateNotFound, HostInAggregate, ZoneConflict."""
    node = hosts.node_of(world, host)
    aggregate = find(world, number)
    if host in aggregate.hosts:
        raise HostInAggregate(aggregate=aggregate.name, host=host)
    what = f"add host {host} to aggregate {aggregate.name}"
    if aggregate.zone is not None:
        _servers_stay(world, aggregate, aggregate.zone, [host], what)
    try:
        with world.cells.api.write() as connection:
            current = _locked(connection, aggregate.id)
            if current.zone is not None:
                _one_zone(connection, current, current.zone, [host], what)
            aggregates.add_host(connection, aggregate.id, host)
    except Exception as error:
        if not aggregates.taken(error):
            raise
        raise HostInAggregate(aggregate=aggregate.name, host=host) from None
    hosts.tell_scheduler(world, [host])
    if node is not None:
        _join_provider(world, node.uuid, aggregate, host)
    return find(world, number)


def _join_provider(world: World, provider: str, aggregate: Aggregate, host: str) -> None:
    try:
        hosts.change_aggregates(world, provider, lambda known: known | {aggregate.uuid})
    except KilonovaError as error:  # the host is a member all the same; the command repairs the mirror
        LOG.warning(
            "Host %s is in aggregate %s, but placement could not be told (%s); `placement sync_aggregates` repairs it",
            host, aggregate.name, error.text,
        )  # fmt: skip


def remove_host(world: World, number: int, host: str) -> Aggregate:
    """Let a host go. AggregateNotFound, HostNotFound, HostNotInAggregate, ZoneConflict, ProviderConflict."""
    aggregate = find(world, number)
    if host not in aggregate.hosts:
        raise HostNotInAggregate(aggregate=aggregate.name, host=host)
    if aggregate.zone is not None:
        what = f"remove host {host} from aggregate {aggregate.name}"
        _servers_stay(world, aggregate, None, [host], what)
    leave(world, aggregate, host)
    return find(world, number)


def leave(world: World, aggregate: Aggregate, host: str) -> None:
    """Take a host out, from placement first. ProviderConflict, HostNotInAggregate."""
    node = hosts.node_of(world, host)
    if node is not None:
        try:
            hosts.change_aggregates(world, node.uuid, lambda known: known - {aggregate.uuid})
        except ProviderNotFound:
            LOG.warning("Host %s leaves aggregate %s and has no provider in placement", host, aggregate.name)
        except ProviderConflict as error:
            raise ZoneConflict(
                what=f"remove host {host} from aggregate {aggregate.name}", why=error.text.rstrip(".")
            ) from None
    with world.cells.api.write() as connection:
        if not aggregates.drop_host(connection, aggregate.id, host):
            raise HostNotInAggregate(aggregate=aggregate.name, host=host)
    hosts.tell_scheduler(world, [host])


def of_host(world: World, host: str) -> list[Aggregate]:
    """The aggregates a host is in."""
    return [find(world, number) for number in aggregates.with_host(world.cells.api, host)]


# -- one zone for each host, and no server that moves to another


def _locked(connection: Connection, number: int) -> Aggregate:
    found = aggregates.locked(connection, number)
    if found is None:
        raise AggregateNotFound(aggregate=number)
    return found


def _one_zone(connection: Connection, aggregate: Aggregate, zone: str, members: Sequence[str], what: str) -> None:
    """ZoneConflict when one of the hosts is in another zone through another aggregate."""
    aggregates.lock_hosts(connection, members)
    for host, other in sorted(aggregates.zones_beside(connection, members, aggregate.id).items()):
        if other != zone:
            raise ZoneConflict(what=what, why=f"host {host} is in availability zone {other}")


def _servers_stay(
    world: World, aggregate: Aggregate, zone: str | None, members: Sequence[str], what: str
) -> None:
    """ZoneConflict when a host with servers would change its zone to this one (None: the aggregate's is taken away)."""
    default = world.settings.default_availability_zone
    with world.cells.api.read() as connection:
        beside = aggregates.zones_beside(connection, members, aggregate.id)
    now = {host: beside.get(host) or (aggregate.zone if host in aggregate.hosts else None) or default
           for host in members}  # fmt: skip
    later = {host: zone or beside.get(host) or default for host in members}
    for host in sorted(hosts.busy(world, [host for host in members if now[host] != later[host]])):
        raise ZoneConflict(what=what, why=f"host {host} has servers, which would be in another availability zone")
