"""`kilonova api`: the Compute API as a process of its own."""

from __future__ import annotations

import argparse

from kilonova.cmd import process


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    process.options(parser, port=8774)


def run(arguments: argparse.Namespace) -> int:
    """Run it until a signal."""
    from kilonova.wiring import compute_api

    return process.run("api", arguments, lambda conf: compute_api.api(conf, arguments.host, arguments.port))
