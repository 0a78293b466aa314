"""`kilonova placement status`: checks of the database before an upgrade, or for a call for support.

Exit code 0 when all succeed, 1 with warnings, 2 with failures, as `placement-status upgrade check` has them.
"""

from __future__ import annotations

import argparse
from typing import Any

from kilonova.cmd import tables


def configure(parser: argparse.ArgumentParser) -> None:
    """It has no options of its own."""


def run(arguments: argparse.Namespace, conf: Any) -> int:
    """Make the checks and show them."""
    from kilonova.conf import databases
    from kilonova.placement.store.operate import status

    database = databases.open_database(conf, "placement_database")
    try:
        checks = status.checks(database, conf.placement.incomplete_consumer_project_id)
    finally:
        database.dispose()
    rows = [(check.name, check.result.name.capitalize(), check.details) for check in checks]
    tables.show(("Check", "Result", "Details"), rows, arguments.format)
    return max(int(check.result) for check in checks)
