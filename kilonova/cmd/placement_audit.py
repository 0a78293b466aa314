"""`kilonova placement audit` and `heal`: what is wrong with the books and with what servers hold; put right on request.

Two comparisons. The first is of the database with itself. The second is of consumers with the servers of the compute
service in the identity service's catalogue; its repairs go through Placement's own API.
Exit code 0 when all is well, 1 when something is wrong (and still is, after a repair), 2 when it could not be done.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from kilonova.cmd import configuration, tables
from kilonova.core import clock
from kilonova.core.errors import KilonovaError

if TYPE_CHECKING:
    from kilonova.cmd.server_claims import Cloud, Looked
    from kilonova.placement.store.operate.books import Finding
    from kilonova.sql.engine import Database

COLUMNS: Final = ("Check", "Result", "Subject", "Found", "Done")
_AGE: Final = 600.0
_PAUSE: Final = 5.0
_DONE, _WOULD = "repaired", "would be repaired"


def configure(parser: argparse.ArgumentParser, *, fix: bool) -> None:
    """Add the options. fix: it is `heal`."""
    add = parser.add_argument
    if fix:
        add("--dry-run", action="store_true", help="only say what would be repaired")
        parser.set_defaults(fix=True)
    else:
        add("--fix", action="store_true", help="put right what can be, as heal does")
        parser.set_defaults(dry_run=False)
    add("--only-database", action="store_true", help="do not compare with servers")
    add("--os-cloud", metavar="NAME", help="the cloud of clouds.yaml as whose administrator servers are listed")
    add("--region", metavar="NAME", help="region of the catalogue (default: that of the cloud, or any)")
    text = "leave consumers and servers alone that are younger (default %(default)g)"
    add("--age", type=_seconds, default=_AGE, metavar="SECONDS", help=text)
    text = "time between the two looks at what seems wrong with servers (default %(default)g)"
    add("--pause", type=_seconds, default=_PAUSE, metavar="SECONDS", help=text)


def run(arguments: argparse.Namespace, conf: Any) -> int:
    """Look, repair if asked to, and show what was found."""
    from kilonova.conf import databases
    from kilonova.placement.store.prepare import REVISIONS
    from kilonova.sql import migrate, reach

    database = databases.open_database(conf, "placement_database")
    report = Report(fix=arguments.fix, dry_run=arguments.dry_run)
    try:
        reach.wait(database, arguments.wait, say=configuration.say)
        with reach.in_words(database):
            migrate.require(database, REVISIONS)
            _books(database, report)
            if arguments.only_database:
                report.notes.append("Servers were not compared: --only-database.")
            else:
                _servers(arguments, conf, database, report)
    except KilonovaError as error:
        report.failure = error.text
    finally:
        database.dispose()
    return report.show(arguments.format)


@dataclass
class Report:
    """What was found and done. failure: why it could not go on."""

    fix: bool
    dry_run: bool
    rows: list[tuple[str, str, str, str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    failure: str = ""
    wrong: int = 0
    repaired: int = 0

    def add(self, finding: Finding, mend: Callable[[], str], *, can: bool = True) -> None:
        """One finding, put right by `mend` where that is wanted; it answers why not. can: it may be tried."""
        done = ""
        if not finding.warning:
            self.wrong += 1
            if self.fix:
                done = (_WOULD if can else "") if self.dry_run else self._mended(mend)
        result = "Warning" if finding.warning else "Wrong"
        self.rows.append((finding.check, result, finding.subject, finding.text, done))

    def show(self, form: str) -> int:
        """Print it; the exit code."""
        tables.show(COLUMNS, self.rows, form)
        for note in self.notes:
            configuration.say(note)
        if self.failure:
            print(f"kilonova: {self.failure}", file=sys.stderr)
            return 2
        configuration.say(self._summary())
        return 1 if self.wrong > self.repaired else 0

    def _mended(self, mend: Callable[[], str]) -> str:
        reason = mend()
        self.repaired += not reason
        return f"left: {reason}" if reason else _DONE

    def _summary(self) -> str:
        if not self.wrong:
            return "All is well."
        return f"{self.wrong} wrong, {self.repaired} repaired." if self.fix else f"{self.wrong} wrong."


def _books(database: Database, report: Report) -> None:
    from kilonova.placement.store.operate import books
    from kilonova.placement.store.transactions import Writer

    writer = Writer(database)

    def mend(finding: Finding) -> str:
        return "" if books.mend(writer, finding) else "it has to be changed through the API"

    for finding in list(books.audit(database)):
        report.add(finding, lambda finding=finding: mend(finding), can=bool(finding.key))  # type: ignore[misc]


def _servers(arguments: argparse.Namespace, conf: Any, database: Database, report: Report) -> None:
    """Look twice; repair releases first, which may make the room that claims need."""
    from kilonova.cmd import cloud_access, server_claims
    from kilonova.placement.store.operate import holdings

    found = cloud_access.open_cloud(arguments, conf)
    if isinstance(found, str):
        report.notes.append(f"Servers were not compared: {found}")
        return
    cloud = server_claims.Cloud(found.servers, found.placement, timedelta(seconds=arguments.age))
    looked = cloud.first(holdings.pages(database))
    report.notes += _left_alone(looked, arguments.age)
    for suspect in _again(cloud, looked, arguments.pause):
        report.add(suspect.finding, lambda suspect=suspect: cloud.mend(suspect), can=cloud.mends(suspect))  # type: ignore[misc]


def _again(cloud: Cloud, looked: Looked, pause: float) -> Iterator[Any]:
    if looked.suspects:
        clock.sleep(pause)
        yield from cloud.second(looked.suspects)


def _left_alone(looked: Looked, age: float) -> list[str]:
    notes = [f"Consumers were compared with {looked.servers} servers."]
    if looked.others:
        notes.append(f"{looked.others} consumers of other types than INSTANCE and MIGRATION were left alone.")
    if looked.young:
        notes.append(f"{looked.young} consumers and servers younger than {age:g} seconds were left alone.")
    return notes


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not a number of seconds")
    return seconds
