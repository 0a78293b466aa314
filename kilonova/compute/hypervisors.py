"""Hypervisors over all cells: compute nodes with their service, and the servers on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kilonova.compute.world import World
from kilonova.core import clock, ids
from kilonova.core.errors import Invalid, Unsupported
from kilonova.db.queries import compute_nodes, host_use
from kilonova.db.queries.compute_nodes import ComputeNode, HypervisorMarkerNotFound, HypervisorNotFound


class HypervisorIdInvalid(Invalid):
    """Ids are UUIDs from 2.53 on."""

    code, message = "hypervisor_id_invalid", "Invalid hypervisor id {value!r}: it must be a UUID."


class PatternWithPages(Invalid):
    """A search gives all that it finds."""

    code = "pattern_with_pages"
    message = "Paging over hypervisors with the hypervisor_hostname_pattern query parameter is not supported."


class HypervisorDown(Invalid):
    """A hypervisor that does not answer cannot be asked."""

    code, message = "hypervisor_down", "The compute service on host {host} is down."


class UptimeUnsupported(Unsupported):
    """Hypervisors that run nothing have no uptime."""

    code, message = "uptime_unsupported", "The {kind} hypervisor does not tell its uptime."


@dataclass(frozen=True, slots=True)
class OnIt:
    """A server as the list of a hypervisor has it; name is the guest's."""

    uuid: str
    name: str


@dataclass(frozen=True, slots=True)
class Hypervisor:
    """A node, whether its service is up, and its servers (None: not asked for)."""

    node: ComputeNode
    up: bool
    servers: tuple[OnIt, ...] | None = None


def page(world: World, limit: int | None, marker: str | int | None, *, with_servers: bool = False) -> list[Hypervisor]:
    """A page in the order of the cells and of arrival; limit None is all. HypervisorMarkerNotFound.

    marker: the uuid, or the number, of the last one of the page before.
    """
    cells = list(world.cells)
    after = 0
    if marker is not None:
        index, after = _place(world, marker)
        cells = cells[index:]
    found: list[Hypervisor] = []
    for cell in cells:
        room = None if limit is None else limit - len(found)
        if room == 0:
            break
        with cell.database.read() as connection:
            nodes = compute_nodes.list_nodes(connection, limit=room, after=after)
            on_them = host_use.servers_on(connection, [node.host for node in nodes]) if with_servers else None
        found += _hypervisors(world, nodes, on_them)
        after = 0
    return found


def _place(world: World, marker: str | int) -> tuple[int, int]:
    for index, cell in enumerate(world.cells):
        with cell.database.read() as connection:
            try:
                return index, compute_nodes.marker_id(connection, marker)
            except HypervisorMarkerNotFound:
                continue
    raise HypervisorMarkerNotFound(marker=marker)


def matching(world: World, pattern: str, *, with_servers: bool = False) -> list[Hypervisor]:
    """All whose hypervisor_hostname contains the text. HypervisorNotFound."""
    found: list[Hypervisor] = []
    for cell in world.cells:
        with cell.database.read() as connection:
            try:
                nodes = compute_nodes.matching_nodes(connection, pattern)
            except HypervisorNotFound:
                continue
            on_them = host_use.servers_on(connection, [node.host for node in nodes]) if with_servers else None
        found += _hypervisors(world, nodes, on_them)
    if not found:
        raise HypervisorNotFound(hypervisor=pattern)
    return found


def by_uuid(world: World, text: str, *, with_servers: bool = False) -> Hypervisor:
    """One by its uuid. HypervisorIdInvalid, HypervisorNotFound."""
    if not ids.is_uuid_like(text):
        raise HypervisorIdInvalid(value=text)
    return _one(world, ids.canonical_uuid(text), with_servers)


def by_number(world: World, text: str) -> Hypervisor:
    """One by its number. HypervisorNotFound, also for what is no number."""
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise HypervisorNotFound(hypervisor=text)
    return _one(world, int(text), False)


def _one(world: World, key: str | int, with_servers: bool) -> Hypervisor:
    for cell in world.cells:
        with cell.database.read() as connection:
            try:
                node = compute_nodes.show_node(connection, key)
            except HypervisorNotFound:
                continue
            on_it = host_use.servers_on(connection, [node.host]) if with_servers else None
        return _hypervisors(world, [node], on_it)[0]
    raise HypervisorNotFound(hypervisor=key)


def _hypervisors(
    world: World, nodes: Sequence[ComputeNode], on_them: Mapping[str, Sequence[host_use.OnHost]] | None
) -> list[Hypervisor]:
    now, down_time = clock.utcnow(), world.settings.service_down_time
    return [
        Hypervisor(node, node.up(now, down_time), None if on_them is None else tuple(
            OnIt(server.uuid, world.settings.instance_name_template % server.id)
            for server in on_them.get(node.host, ())
        ))
        for node in nodes
    ]  # fmt: skip


def statistics(world: World) -> dict[str, int]:
    """Sums over the hypervisors of enabled services, with how many they are under `count`."""
    total: dict[str, int] = {}
    for cell in world.cells:
        with cell.database.read() as connection:
            for name, value in compute_nodes.statistics(connection).items():
                total[name] = total.get(name, 0) + value
    return total


def uptime(hypervisor: Hypervisor) -> str:
    """How long the machine has been running, in the hypervisor's words. HypervisorDown, UptimeUnsupported."""
    if not hypervisor.up:
        raise HypervisorDown(host=hypervisor.node.host)
    raise UptimeUnsupported(kind=hypervisor.node.hypervisor_type)
