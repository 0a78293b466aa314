"""The console of a server, asked of the agent of its host."""

from __future__ import annotations

from kilonova.bus.calls import ConsoleOutput, console_output
from kilonova.compute import actions
from kilonova.compute.lookup import Found, in_cell
from kilonova.compute.world import World
from kilonova.core.context import Context
from kilonova.core.errors import Conflict


class ConsoleHostDown(Conflict):
    """Nobody answers for the host."""

    code, message = "host_down", "The host of instance {server} does not answer."


def output(world: World, ctx: Context, found: Found, length: int | None) -> str:
    """The last `length` lines (None or -1: all), without control characters but TAB and LF."""
    server, _ = in_cell(found)
    actions.check(actions.ROWS["console-output"], server, ctx)
    agent = world.agent_of(server.host or "")
    if agent is None or not agent.up:
        raise ConsoleHostDown(server=server.uuid)
    lines = None if length is None or length < 0 else length
    question = ConsoleOutput(server.host or "", server.uuid, lines)
    answer = world.bus.call(console_output, question, to=agent.agent, ctx=ctx)
    return "".join(char for char in answer.output if char in "\t\n" or ord(char) >= 32)
