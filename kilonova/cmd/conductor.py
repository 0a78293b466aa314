"""`kilonova conductor`: a conductor as a process of its own."""

from __future__ import annotations

import argparse

from kilonova.cmd import process


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    process.options(parser, instances=True)


def run(arguments: argparse.Namespace) -> int:
    """Run it until a signal."""
    from kilonova.wiring import conductor

    return process.run("conductor", arguments, lambda conf: conductor.conductor(conf, arguments.instance))
