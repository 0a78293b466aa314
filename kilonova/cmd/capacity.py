"""`kilonova capacity`: how many more servers of a flavor fit, by zone and aggregate, and what runs out first. Exit code
3 when none fits.
"""

from __future__ import annotations

import argparse
import json

from kilonova.cmd import scheduler_api


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    scheduler_api.asked(parser)
    scheduler_api.options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the numbers."""
    asked = scheduler_api.body(arguments)
    found = scheduler_api.ask(scheduler_api.client(arguments), "POST", "/capacity", {"capacity": asked})["capacity"]
    if arguments.format == "json":
        print(json.dumps(found, indent=2))
    else:
        from kilonova.cmd import screens

        screens.capacity(found)
    return 0 if found["fits"] else 3
