"""`kilonova simulate`: what the scheduler would decide. Nothing is claimed or written. Exit code 3 when no host would
do.
"""

from __future__ import annotations

import argparse
import json

from kilonova.cmd import scheduler_api


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    scheduler_api.asked(parser)
    parser.add_argument("--count", type=int, default=1, metavar="N", help="servers at once (default %(default)s)")
    parser.add_argument("--host", metavar="NAME", help="tell the fate of this host")
    scheduler_api.options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the decision that is not carried out."""
    asked = scheduler_api.body(arguments) | {"count": arguments.count}
    if arguments.host:
        asked["host"] = arguments.host
    found = scheduler_api.ask(scheduler_api.client(arguments), "POST", "/simulate", {"simulate": asked})["decision"]
    if arguments.format == "json":
        print(json.dumps(found, indent=2))
    else:
        from kilonova.cmd import screens

        screens.decision(found)
    return 0 if found["outcome"] == "placed" else 3
