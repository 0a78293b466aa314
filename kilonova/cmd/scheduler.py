"""`kilonova scheduler`: a scheduler as a process of its own."""

from __future__ import annotations

import argparse

from kilonova.cmd import process


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    process.options(parser, instances=True)


def run(arguments: argparse.Namespace) -> int:
    """Run it until a signal. SIGHUP makes it read cells and hosts again."""
    from kilonova.wiring import scheduler

    return process.run("scheduler", arguments, lambda conf: scheduler.scheduler(conf, arguments.instance), reloads=True)
