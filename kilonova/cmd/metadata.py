"""`kilonova metadata`: the metadata service as a process of its own."""

from __future__ import annotations

import argparse

from kilonova.cmd import process


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    process.options(parser, port=8775)


def run(arguments: argparse.Namespace) -> int:
    """Run it until a signal."""
    from kilonova.wiring import metadata

    return process.run("metadata", arguments, lambda conf: metadata.metadata(conf, arguments.host, arguments.port))
