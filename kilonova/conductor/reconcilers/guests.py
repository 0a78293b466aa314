"""Guests on hosts where their server is not: left behind when it was deleted or moved on while the agent was down.

A delete does not wait for a dead agent, nor does the undo of a build; so an agent that comes back may have guests
that nobody wants. Each agent that is up is asked when it is new to us, has restarted, was down in the last round, or
was not asked for ASK_EACH_S. A guest is a leftover when its server is deleted, or is elsewhere (or nowhere), no
workflow attends to it and it has no migration under way: the source of a resize keeps its guest until that is
confirmed. The guests are listed before the rows are read and a row outlives its guest, so what is removed can be
missed by nobody. Guests of servers that were never ours are an operator's business: they are named in the log.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator

from kilonova.bus.calls import Guest, GuestList, RemoveGuests, list_guests, remove_guests
from kilonova.cells.cells import Cell
from kilonova.compute.world import World
from kilonova.conductor.reconcilers.memory import Memory
from kilonova.core import clock, liveness
from kilonova.core.errors import KilonovaError
from kilonova.db.queries import leftovers
from kilonova.db.queries.leftovers import Agent

LOG = logging.getLogger(__name__)

ASK_EACH_S = 600.0
_BATCH = 500  # hosts in one call


def reconcile(world: World, memory: Memory) -> int:
    """Have their agents remove them; how many."""
    removed = 0
    for cell in world.cells:
        with cell.database.read() as connection:
            agents = leftovers.agents(connection)
        for agent in agents:
            if not liveness.is_up(agent.last_seen_up, clock.utcnow(), world.settings.service_down_time):
                memory.facts.pop(agent.id, None)
            elif _due(memory, agent):
                try:
                    removed += _clean(world, cell, agent)
                    memory.facts[agent.id] = (agent.epoch, clock.monotonic())
                except KilonovaError as error:
                    LOG.info("Agent %s could not be asked for its guests: %s", agent.id, error)
    return removed


def _due(memory: Memory, agent: Agent) -> bool:
    epoch, asked = memory.facts.get(agent.id, (None, 0.0))
    return bool(epoch != agent.epoch or clock.monotonic() - asked >= ASK_EACH_S)


def _clean(world: World, cell: Cell, agent: Agent) -> int:
    removed = 0
    for hosts in _batches(cell, agent):
        found = world.bus.call(list_guests, GuestList(hosts), to=agent.id).guests
        leftover = _leftovers(world, cell, found)
        if leftover:
            for guest in leftover:
                LOG.warning("Guest %s on host %s has no server there and is removed", guest.server, guest.host)
            world.bus.cast(remove_guests, RemoveGuests(leftover), to=agent.id)
            removed += len(leftover)
    return removed


def _batches(cell: Cell, agent: Agent) -> Iterator[tuple[str, ...]]:
    with cell.database.read() as connection:
        hosts = leftovers.hosts_of(connection, agent.id)
    for start in range(0, len(hosts), _BATCH):
        yield tuple(hosts[start : start + _BATCH])


def _leftovers(world: World, cell: Cell, found: tuple[Guest, ...]) -> tuple[Guest, ...]:
    uuids = sorted({guest.server for guest in found})
    with cell.database.read() as connection:
        moving = leftovers.moving(connection, uuids)
        known = leftovers.standing(connection, uuids)
    chosen = []
    for guest in found:
        server = known.get(guest.server)
        if server is None:
            LOG.warning("Guest %s on host %s is of no server in cell %s", guest.server, guest.host, cell.name)
        elif not server.attended and guest.server not in moving and (server.deleted or server.host != guest.host):
            chosen.append(guest)
    return tuple(chosen)
