"""Allocations of servers that are gone, or are on no host.

Every workflow gives back what it claimed; this is for what is left when its undo had to be given up, because
Placement did not answer for longer than anybody waits. A consumer counts as a server's when it holds VCPU or
MEMORY_MB of one of our compute nodes. It is a leftover when no cell has a server of its uuid that is on a host or is
attended to by a workflow, no build request waits for it, and it is no migration's. Claims come before rows and rows
before releases, so one look proves nothing: only what was a leftover in every round for GRACE_S is released.
One call per compute node with a pause behind it, a few hundred consumers looked up at a time.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

from kilonova.clients.placement import ProviderNotFound
from kilonova.compute.world import World
from kilonova.conductor.reconcilers.memory import Memory, ripe
from kilonova.db.queries import leftovers

LOG = logging.getLogger(__name__)

GRACE_S = 300.0
_PAUSE_S = 0.005  # ten thousand calls in a row would slow everybody down
_SHAPE = ("VCPU", "MEMORY_MB")


def reconcile(world: World, memory: Memory) -> int:
    """Release them; how many."""
    suspects: list[str] = []
    for cell in world.cells:
        after = 0
        while True:
            with cell.database.read() as connection:
                batch = leftovers.nodes(connection, after)
            if not batch:
                break
            after = batch[-1][0]
            suspects += _without_server(world, _consumers(world, memory, [uuid for _, uuid in batch]))
            if memory.pause(0):
                return 0
    released = 0
    for consumer in _without_server(world, set(ripe(memory, suspects, GRACE_S))):
        if world.placement.delete_allocations(consumer):
            LOG.warning("The allocations of %s, which is no server on a host, were released", consumer)
            released += 1
    return released


def _consumers(world: World, memory: Memory, providers: Iterable[str]) -> set[str]:
    found: set[str] = set()
    for provider in providers:
        if memory.pause(_PAUSE_S):
            break
        try:
            held: dict[str, Any] = world.placement.provider_allocations(provider)
        except ProviderNotFound:
            continue
        found |= {consumer for consumer, row in held.items() if any(name in row["resources"] for name in _SHAPE)}
    return found


def _without_server(world: World, consumers: set[str]) -> list[str]:
    left = sorted(consumers)
    if not left:
        return []
    with world.cells.api.read() as connection:
        waiting = leftovers.pending(connection, left)
    left = [uuid for uuid in left if uuid not in waiting]
    for cell in world.cells.every():
        with cell.database.read() as connection:
            known = leftovers.standing(connection, left)
            moves = leftovers.moves(connection, left)
        kept = {row.uuid for row in known.values() if row.attended or (row.host is not None and not row.deleted)}
        left = [uuid for uuid in left if uuid not in kept and uuid not in moves]
    return left
