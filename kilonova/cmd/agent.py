"""`kilonova agent`: an agent with simulated hypervisors as a process of its own."""

from __future__ import annotations

import argparse

from kilonova.cmd import process


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    process.options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run it until a signal."""
    from kilonova.wiring import agent

    return process.run("agent", arguments, lambda conf: agent.agent(conf))
