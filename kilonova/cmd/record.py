"""`kilonova record FILE`: the newest requests that the scheduler decided, and the hosts as they are, in a file for
`kilonova replay`.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from kilonova.cmd import scheduler_api
from kilonova.cmd.scheduler_api import FileUnusable


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("file", metavar="FILE", type=Path, help="is written over when it is there")
    parser.add_argument("--last", type=int, default=1000, metavar="N", help="requests (default %(default)s)")
    scheduler_api.cloud(parser)


def run(arguments: argparse.Namespace) -> int:
    """Write the file and say what is in it."""
    from kilonova.core import json

    api = scheduler_api.client(arguments)
    found = scheduler_api.ask(api, "GET", f"/recording?decisions={arguments.last}")["recording"]
    try:
        arguments.file.write_bytes(json.dumps(found))
    except OSError as error:
        raise FileUnusable(path=str(arguments.file), reason=(error.strerror or str(error)).lower()) from error
    print(f"{len(found['requests'])} requests and {len(found['hosts'])} hosts are in {arguments.file}.")
    return 0
