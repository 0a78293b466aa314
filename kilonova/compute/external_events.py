"""Events that other services tell of servers: matched to servers, passed on to the conductor that may wait for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kilonova.bus.calls import Event, Events, deliver_events
from kilonova.compute.world import World
from kilonova.core.context import Context
from kilonova.db.queries import requests, servers

TAG_REQUIRED = frozenset(("volume-extended", "power-update", "accelerator-request-bound"))
"""Events that mean nothing without a tag."""


@dataclass(frozen=True, slots=True)
class Told:
    """One event as it was told, and what became of it: 200, 400, 404 or 422."""

    name: str
    server: str
    status: str
    tag: str | None
    code: int

    @property
    def accepted(self) -> bool:
        """Whether it was passed on."""
        return self.code == 200


def tell(world: World, ctx: Context, told: Sequence[tuple[str, str, str, str | None]]) -> list[Told]:
    """Pass on events of (name, server, status, tag); answers each with its code (server-view 21)."""
    uuids = sorted({server for _, server, _, _ in told})
    with world.cells.api.read() as connection:
        known = requests.mappings(connection, uuids)
    hosts = _hosts(world, {uuid: mapping.cell_uuid for uuid, mapping in known.items() if mapping.cell_uuid})
    answers: list[Told] = []
    passed: list[Event] = []
    for name, server, status, tag in told:
        code = 200
        if server not in hosts:
            code = 404
        elif hosts[server] is None:
            code = 422
        elif name in TAG_REQUIRED and not tag:
            code = 400
        else:
            passed.append(Event(known[server].cell_uuid or "", server, name, tag or "", status))
        answers.append(Told(name, server, status if code == 200 else "failed", tag, code))
    if passed:
        world.bus.cast(deliver_events, Events(tuple(passed)), ctx=ctx)
    return answers


def _hosts(world: World, cells: dict[str, str]) -> dict[str, str | None]:
    found: dict[str, str | None] = {}
    for cell in sorted(set(cells.values())):
        wanted = [uuid for uuid, where in cells.items() if where == cell]
        found |= servers.hosts_of(world.cells.database(cell), wanted)
    return found
