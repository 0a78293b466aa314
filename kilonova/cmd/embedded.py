"""`kilonova embedded`: identity, images, network and volumes as a process of their own."""

from __future__ import annotations

import argparse

from kilonova.cmd import process


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    process.options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run it until a signal."""
    from kilonova.wiring import small_services

    return process.run("embedded", arguments, lambda conf: small_services.embedded(conf))
