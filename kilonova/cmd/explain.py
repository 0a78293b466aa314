"""`kilonova explain SERVER|REQUEST-ID`: why the scheduler decided as it did, on one screen."""

from __future__ import annotations

import argparse
import json

from kilonova.cmd import scheduler_api


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("reference", metavar="SERVER|REQUEST-ID", help="a server's uuid, a request's id, or the number "
                        "of a decision")  # fmt: skip
    parser.add_argument("--host", metavar="NAME", help="tell the fate of this host")
    scheduler_api.options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the newest decision about it."""
    from urllib.parse import quote, urlencode

    query = "?" + urlencode({"host": arguments.host}) if arguments.host else ""
    path = f"/decisions/{quote(arguments.reference, safe='')}{query}"
    found = scheduler_api.client(arguments).call("GET", path)["decision"]
    if arguments.format == "json":
        print(json.dumps(found, indent=2))
    else:
        from kilonova.cmd import screens

        screens.decision(found)
    return 0
