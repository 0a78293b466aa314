"""`kilonova placement import`: an OpenStack Placement's database, copied into ours; again for what changed since.

Exit code 0 when both are equal, 1 when they are not (then nothing was written), 2 when it could not be done.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, Final

from kilonova.cmd import configuration, tables
from kilonova.cmd.process import BadConfiguration
from kilonova.core import clock

_SAY_EVERY: Final = 2.0  # seconds


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add = parser.add_argument
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--from", dest="source", metavar="URL", help="address of the database to copy")
    text = "a placement.conf or nova.conf that has the address, which then is on no command line"
    where.add_argument("--from-config", dest="source_config", type=Path, metavar="FILE", help=text)
    add("--merge", action="store_true", help="keep providers that were made here and are not at the source")
    add("--overwrite", action="store_true", help="make all equal to the source, whatever was made or changed here")
    add("--dry-run", action="store_true", help="do all of it and undo it: what would be changed is shown")


def run(arguments: argparse.Namespace, conf: Any) -> int:
    """Import and show the comparison."""
    from kilonova.conf import databases
    from kilonova.placement.store.claims import Incomplete
    from kilonova.placement.store.operate import importing
    from kilonova.sql import reach

    nobody = Incomplete(conf.placement.incomplete_consumer_project_id, conf.placement.incomplete_consumer_user_id)
    how = importing.How(
        merge=arguments.merge and not arguments.overwrite, overwrite=arguments.overwrite, dry_run=arguments.dry_run,
        incomplete=nobody,
    )  # fmt: skip
    database = databases.open_database(conf, "placement_database")
    try:
        reach.wait(database, arguments.wait, say=configuration.say)
        outcome = importing.run(database, _address(arguments), how, _Progress())
    finally:
        database.dispose()
    rows = [(row.what, row.source, row.here, row.here - row.source) for row in outcome.compared]
    tables.show(("What", "Source", "Here", "Difference"), rows, arguments.format)
    _say(outcome, dry_run=how.dry_run)
    return 0 if outcome.equal else 1


def _say(outcome: Any, *, dry_run: bool) -> None:
    for note in outcome.notes:
        configuration.say(f"At the source: {note}.")
    done = ", ".join(f"{count} {what} {how}" for (what, how), count in sorted(outcome.done.items())) or "nothing to do"
    if not outcome.equal:
        configuration.say("The two would differ, so nothing was written: report this with the table.")
    elif dry_run:
        configuration.say(f"Would be done: {done}. Nothing was written.")
    else:
        configuration.say(f"Done: {done}. Both sides are equal.")


def _address(arguments: argparse.Namespace) -> str:
    """The source's. BadConfiguration."""
    if arguments.source:
        return str(arguments.source)
    from kilonova.conf.load import ConfigError, load

    path = arguments.source_config
    try:
        conf = load([path], application="placement", warn=False)
    except ConfigError as error:
        raise BadConfiguration(str(error)) from error
    if not conf.placement_database.connection:
        raise BadConfiguration(f"{path} has no connection in [placement_database].")
    return str(conf.placement_database.connection)


class _Progress:
    """Says how far it is, not too often."""

    def __init__(self) -> None:
        self._said = clock.monotonic()

    def __call__(self, what: str, done: int, of: int) -> None:
        now = clock.monotonic()
        if now - self._said >= _SAY_EVERY or done >= of:
            self._said = now
            configuration.say(f"{what}: {done} of {of}")
