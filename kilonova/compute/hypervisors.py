"""Hypervisors over all cells: compute nodes with their service, and the servers on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from kilonova.compute.over_cells import read_cell, read_each
from kilonova.compute.world import World
from kilonova.core import clock, ids
from kilonova.core.errors import Invalid, NotFound, Unsupported
from kilonova.db.queries import compute_nodes, host_use
from kilonova.db.queries.compute_nodes import ComputeNode
from kilonova.sql.engine import Connection


class HypervisorNotFound(NotFound):
    """There is none, or none that matches."""

    code, message = "hypervisor_not_found", "Hypervisor {hypervisor} could not be found."


class HypervisorMarkerNotFound(Invalid):
    """The marker is no hypervisor."""

    code, message = "hypervisor_marker_not_found", "Marker {marker} could not be found."


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
    first, after = (0, 0) if marker is None else _place(world, marker)
    found: list[Hypervisor] = []
    for cell in cells[first:]:
        room = None if limit is None else limit - len(found)
        if room == 0:
            break
        found += read_cell(cell, partial(_read_page, world, room, after, with_servers)) or []
        after = 0
    return found


def _read_page(
    world: World, limit: int | None, after: int, with_servers: bool, connection: Connection
) -> list[Hypervisor]:
    nodes = compute_nodes.list_nodes(connection, limit=limit, after=after)
    return _with_servers(world, connection, nodes, with_servers)


def _place(world: World, marker: str | int) -> tuple[int, int]:
    """(index of the cell, number of the node) of a marker. HypervisorMarkerNotFound."""
    for index, (_, node) in enumerate(read_each(world, partial(compute_nodes.get_node, key=marker))):
        if node is not None:
            return index, node.id
    raise HypervisorMarkerNotFound(marker=marker)


def matching(world: World, pattern: str, *, with_servers: bool = False) -> list[Hypervisor]:
    """All whose hypervisor_hostname contains the text. HypervisorNotFound."""

    def read(connection: Connection) -> list[Hypervisor]:
        return _with_servers(world, connection, compute_nodes.search_nodes(connection, pattern), with_servers)

    found = [one for _, several in read_each(world, read) for one in several or ()]
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
    def read(connection: Connection) -> list[Hypervisor]:
        node = compute_nodes.get_node(connection, key)
        return [] if node is None else _with_servers(world, connection, [node], with_servers)

    for _, found in read_each(world, read):
        if found:
            return found[0]
    raise HypervisorNotFound(hypervisor=key)


def _with_servers(
    world: World, connection: Connection, nodes: Sequence[ComputeNode], with_servers: bool
) -> list[Hypervisor]:
    on_them = host_use.servers_on(connection, [node.host for node in nodes]) if with_servers else None
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
    total = dict.fromkeys(compute_nodes.SUMMED, 0)
    for _, sums in read_each(world, compute_nodes.statistics):
        for name, value in (sums or {}).items():
            total[name] += value
    return total


def uptime(hypervisor: Hypervisor) -> str:
    """How long the machine has been running, in the hypervisor's words. HypervisorDown, UptimeUnsupported."""
    if not hypervisor.up:
        raise HypervisorDown(host=hypervisor.node.host)
    raise UptimeUnsupported(kind=hypervisor.node.hypervisor_type)
