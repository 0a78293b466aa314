"""The configuration of a command that changes databases rather than runs a service."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from kilonova.cmd.process import BadConfiguration

DEFAULT_FILE = Path("/etc/kilonova/kilonova.conf")


def options(parser: argparse.ArgumentParser, *, inner: bool = False) -> None:
    """Add the options that may stand before the action's name and (`inner`) after it."""
    text = f"a kilonova.conf, repeatable (default {DEFAULT_FILE}, where it is there)"
    place: dict[str, Any] = {"dest": "inner_config_file"} if inner else {}
    parser.add_argument("--config-file", type=Path, action="append", default=[], metavar="FILE", help=text, **place)
    patience(parser, "a database", default=argparse.SUPPRESS if inner else 0.0)


def patience(parser: argparse.ArgumentParser, what: str, default: float | str = 0.0) -> None:
    """Add the option that says how long to wait."""
    text = f"wait so long for {what} that does not answer yet (default 0)"
    parser.add_argument("--wait", type=seconds, default=default, metavar="SECONDS", help=text)


def load(arguments: argparse.Namespace, application: str = "compute") -> Any:
    """The options of an application. BadConfiguration."""
    from kilonova.conf.load import ConfigError
    from kilonova.conf.load import load as read

    try:
        return read(files(arguments), application=application, warn=False)
    except ConfigError as error:
        raise BadConfiguration(str(error)) from error


def files(arguments: argparse.Namespace) -> list[Path]:
    """The files that were asked for, or the usual one."""
    asked = [*arguments.config_file, *getattr(arguments, "inner_config_file", ())]
    return asked or [path for path in (DEFAULT_FILE,) if path.exists()]


def say(line: str) -> None:
    """To who waits at the terminal, beside what a program may read."""
    print(line, file=sys.stderr, flush=True)


def seconds(text: str) -> float:
    """The type of an option."""
    try:
        found = float(text)
    except ValueError:
        found = -1.0
    if not 0 <= found < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not a number of seconds")
    return found
