"""The `kilonova` command. A subcommand's module is imported only when it is called, so that help is instant.

A subcommand module has `configure(parser)` and `run(arguments) -> exit code`. An error of ours ends in one sentence
on standard error and exit code 1; bad usage in exit code 2.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence
from typing import NoReturn

from kilonova import __version__
from kilonova.core.errors import KilonovaError

COMMANDS: dict[str, str] = {
    "up": "start a whole cloud in this process, or go on with the one that is there",
    "status": "say whether the cloud runs, and where",
    "down": "stop the cloud",
    "api": "run the Compute API",
    "placement": "run Placement",
    "conductor": "run a conductor",
    "scheduler": "run a scheduler",
    "agent": "run an agent with simulated hypervisors",
    "metadata": "run the metadata service, which tells guests about themselves",
    "embedded": "run the small identity, image, network and volume services",
    "db": "make the tables of databases, or bring them up to date",
    "cell": "register cells and take hosts into service",
    "explain": "say why the scheduler chose a server's host, or found none",
    "simulate": "say which host the scheduler would choose, without claiming it",
    "capacity": "say how many more servers of a flavor fit, and what runs out first",
    "aggregates": "say what is wrong with the aggregates of a cloud",
    "record": "keep requests and host states in a file, for `replay`",
    "replay": "schedule recorded requests again under other settings, and compare",
    "bootstrap": "make users, roles, services and endpoints in an identity service",
}
"""Subcommand to its line of help; its module is `kilonova.cmd.<name>`."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one subcommand; answers the exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    name = next((word for word in words if not word.startswith("-")), None)
    parser = _parser(name)
    parsed = parser.parse_args(words)
    module = importlib.import_module(f"kilonova.cmd.{parsed.command}")
    try:
        return int(module.run(parsed))
    except KilonovaError as error:
        print(f"kilonova: {error.text}", file=sys.stderr)
        return 1
    except BrokenPipeError:  # the reader of our output has gone; nothing is left to say
        sys.stderr.close()
        return 1


def script() -> NoReturn:
    """The console script."""
    sys.exit(main())


def _parser(name: str | None) -> argparse.ArgumentParser:
    """The parser, with the options of the one subcommand that is about to run."""
    parser = argparse.ArgumentParser(
        prog="kilonova",
        description="An OpenStack-compatible compute control plane.",
        epilog="`kilonova COMMAND --help` says what a command takes.",
    )
    parser.add_argument("-V", "--version", action="version", version=f"kilonova {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for command, text in COMMANDS.items():
        child = commands.add_parser(command, help=text, description=text[0].upper() + text[1:] + ".")
        if command == name:
            importlib.import_module(f"kilonova.cmd.{command}").configure(child)
    return parser


if __name__ == "__main__":
    script()
