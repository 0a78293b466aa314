"""`kilonova placement`: Placement as a process of its own; with an action, the commands that operate it."""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path
from typing import Any, Final

from kilonova.cmd import configuration, db, process, state_dir, tables
from kilonova.core.errors import KilonovaError, NotFound

FILES: Final = (configuration.DEFAULT_FILE, configuration.DEFAULT_FILE.with_name("placement.conf"))
COULD_NOT: Final = 2
"""Exit code of an action that could not be done."""

ACTIONS: Final = {
    "db": "make Placement's tables, or bring them up to date",
    "status": "say whether the database is fit for an upgrade",
    "audit": "look for what is wrong; 1 when something is found",
    "heal": "look for what is wrong, and put right what can be",
    "import": "copy the database of an OpenStack Placement",
}
"""Action to its line of help; its module is `kilonova.cmd.placement_<action>`."""


class NoCloudThere(NotFound):
    code, message = "no_cloud_there", "There is no database of Placement in {path}: run `kilonova up` there first."


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options and actions."""
    process.options(parser, port=8778)
    parser.set_defaults(wait=0.0)
    actions = parser.add_subparsers(dest="action", metavar="ACTION")
    for name, text in ACTIONS.items():
        child = actions.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
        if name == "db":
            _configure_db(child)
            continue
        configuration.options(child, inner=True)
        tables.options(child)
        text = "use the database and clouds.yaml of a cloud that `kilonova up` made there"
        child.add_argument("--state-dir", type=Path, metavar="DIR", help=text)
        _module(name).configure(child, **({"fix": name == "heal"} if name in ("audit", "heal") else {}))


def run(arguments: argparse.Namespace) -> int:
    """Do the action, or run the service until a signal."""
    if arguments.action is not None:
        return operate(arguments)
    from kilonova.wiring import placement

    return process.run("placement", arguments, lambda conf: placement.capacity(conf, arguments.host, arguments.port))


def operate(arguments: argparse.Namespace) -> int:
    """Do the action. Exit code 2 when it could not be done."""
    if arguments.action == "db":
        words = {"action": arguments.db_action, "kinds": ["placement"], "config_file": _files(arguments)}
        return db.run(argparse.Namespace(**{**vars(arguments), **words, "inner_config_file": []}))
    try:
        return int(_module(arguments.action).run(arguments, _load(arguments)))
    except KilonovaError as error:
        print(f"kilonova: {error.text}", file=sys.stderr)
        return COULD_NOT


def _configure_db(parser: argparse.ArgumentParser) -> None:
    inner = parser.add_subparsers(dest="db_action", metavar="ACTION", required=True)
    for name, text in db.ACTIONS.items():
        child = inner.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
        configuration.options(child, inner=True)
        if name == "version":
            tables.options(child)


def _load(arguments: argparse.Namespace) -> Any:
    """Placement's options; with --state-dir, those of the cloud there. BadConfiguration, NoCloudThere."""
    from kilonova.conf.load import ConfigError, load

    overrides: dict[str, Any] = {}
    files = _files(arguments)
    if arguments.state_dir is not None:
        folder = state_dir.chosen(arguments) / "databases"
        if not (folder / "placement.db").exists():
            raise NoCloudThere(path=str(folder))
        overrides, files = {"state_path": str(folder)}, _asked(arguments)
    try:
        return load(files, overrides, application="placement", warn=False)
    except ConfigError as error:
        raise process.BadConfiguration(str(error)) from error


def _files(arguments: argparse.Namespace) -> list[Path]:
    """The files that were asked for, or the usual ones."""
    return _asked(arguments) or [path for path in FILES if path.exists()]


def _asked(arguments: argparse.Namespace) -> list[Path]:
    return [*arguments.config_file, *getattr(arguments, "inner_config_file", ())]


def _module(action: str) -> Any:
    name = "audit" if action == "heal" else action
    return importlib.import_module(f"kilonova.cmd.placement_{name}")
