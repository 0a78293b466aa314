"""`kilonova placement`: Placement as a process of its own."""

from __future__ import annotations

import argparse

from kilonova.cmd import process


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    process.options(parser, port=8778)


def run(arguments: argparse.Namespace) -> int:
    """Run it until a signal."""
    from kilonova.wiring import placement

    return process.run("placement", arguments, lambda conf: placement.capacity(conf, arguments.host, arguments.port))
