"""`kilonova status`: whether the cloud of a state directory runs, and where. Exit code 0 when it is ready, 3 when it
is stopped, 1 otherwise."""

from __future__ import annotations

import argparse
import json

from kilonova.cmd import state_dir
from kilonova.cmd.cloud_process import CloudProcess, look


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    state_dir.configure(parser)
    parser.add_argument("-f", "--format", choices=("table", "json"), default="table", help="default: %(default)s")


def run(arguments: argparse.Namespace) -> int:
    """Print what is known."""
    path = state_dir.chosen(arguments)
    cloud = look(path)
    facts = {
        "state": cloud.state,
        "url": cloud.url,
        "pid": cloud.pid,
        "hosts": cloud.hosts,
        **{name: value for name, value in cloud.health.items() if name not in ("status", "hosts")},
        "state_dir": str(path),
    }
    print(json.dumps(facts, indent=2) if arguments.format == "json" else _table(facts), flush=True)
    return _exit_code(cloud)


def _table(facts: dict[str, object]) -> str:
    rows = [(name.replace("_", " "), value) for name, value in facts.items() if value is not None]
    return "\n".join(f"{name:<12} {value}" for name, value in rows)


def _exit_code(cloud: CloudProcess) -> int:
    return {"ready": 0, "stopped": 3}.get(cloud.state, 1)
