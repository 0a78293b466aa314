"""Hosts as the administrator's use cases see them: which cell has one, what runs there, who has to hear of changes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from kilonova.bus import calls
from kilonova.bus.calls import HostsChanged, Refresh
from kilonova.cells.cells import Cell
from kilonova.clients.placement import ProviderConflict, ProviderNotFound
from kilonova.compute.world import World
from kilonova.core.errors import NotFound, Unavailable
from kilonova.db.queries import compute_nodes, host_use, hosts
from kilonova.db.queries.compute_nodes import ComputeNode

LOG = logging.getLogger(__name__)

_PLACEMENT_TRIES = 4


class HostNotFound(NotFound):
    """No compute service is known under that name."""

    code, message = "host_not_found", "Compute host {host} could not be found."


def cell_of(world: World, host: str) -> Cell:
    """The cell that a host is mapped to. HostNotFound."""
    with world.cells.api.read() as connection:
        found = hosts.cells_of(connection, [host]).get(host)
    if found is None:
        raise HostNotFound(host=host)
    return world.cells.cell(found)


def node_of(world: World, host: str) -> ComputeNode | None:
    """The compute node of a mapped host; None while it has none. HostNotFound."""
    with cell_of(world, host).database.read() as connection:
        return next(iter(compute_nodes.nodes_of(connection, [host])), None)


def busy(world: World, names: Sequence[str]) -> set[str]:
    """Those of the hosts that have servers, in any cell."""
    found: set[str] = set()
    for cell in world.cells:
        with cell.database.read() as connection:
            found |= host_use.busy_hosts(connection, names)
    return found


def tell_scheduler(world: World, names: Sequence[str]) -> None:
    """These hosts' rows changed; a scheduler that misses it finds out by itself within seconds."""
    if names:
        try:
            world.bus.cast(calls.hosts_changed, HostsChanged(tuple(names)))
        except Unavailable as error:
            LOG.info("No scheduler to tell of %s changed hosts: %s", len(names), error.text)


def refresh(world: World, host: str) -> None:
    """Have the host's agent report at once; it then learns whether it is disabled, and tells placement."""
    served = world.agent_of(host)
    if served is not None:
        try:
            world.bus.cast(calls.refresh_hosts, Refresh((host,)), to=served.agent)
        except Unavailable as error:
            LOG.info("The agent of host %s cannot be told to report; it will by itself: %s", host, error.text)


def change_aggregates(world: World, provider: str, change: Callable[[set[str]], set[str]]) -> None:
    """Change which of placement's aggregates a provider is in, again if somebody else changes it meanwhile.

    ProviderNotFound, ProviderConflict after some tries.
    """
    for attempt in range(1, _PLACEMENT_TRIES + 1):
        before, generation = world.placement.aggregates(provider)
        after = change(set(before))
        if after == set(before):
            return
        try:
            world.placement.set_aggregates(provider, after, generation)
            return
        except ProviderConflict:
            if attempt == _PLACEMENT_TRIES:
                raise


def remove_provider(world: World, provider: str) -> None:
    """Take a host's provider out of placement. What stands against it is logged: the host is gone anyway."""
    try:
        world.placement.delete_provider(provider)
    except (ProviderConflict, ProviderNotFound, Unavailable) as error:
        LOG.warning("The resource provider %s of a removed host stays in placement: %s", provider, error.text)
