"""`kilonova placement audit` and `heal`: what is wrong with the books and with what servers hold; put right on request.

Two comparisons. The first is of the database with itself. The second is of consumers with the servers of the compute
service in the identity service's catalogue; its repairs go through Placement's own API.
Exit code 0 when all is well, 1 when something is wrong (and still is, after a repair), 2 when it could not be done;
or those of Nova's commands of the same purpose.
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
    from kilonova.cmd.server_claims import Cloud, Looked, Suspect
    from kilonova.placement.store.operate.books import Finding
    from kilonova.sql.engine import Database

COLUMNS: Final = ("Check", "Result", "Subject", "Found", "Done")
_AGE: Final = 600.0
_PAUSE: Final = 5.0
_DONE, _WOULD = "repaired", "would be repaired"
_ENOUGH: Final = "as many are repaired as were asked for"


def configure(parser: argparse.ArgumentParser, *, fix: bool) -> None:
    """Add the options. fix: it is `heal`."""
    add = parser.add_argument
    if fix:
        add("--dry-run", action="store_true", help="only say what would be repaired")
        parser.set_defaults(fix=True)
    else:
        add("--fix", action="store_true", help="put right what can be, as heal does")
        parser.set_defaults(dry_run=False)
    text = "look at this check only, repeatable; only these are repaired"
    add("--check", action="append", default=[], metavar="CHECK", help=text)
    add("--consumer", metavar="UUID", help="look at this server or consumer only")
    add("--provider", metavar="UUID", help="look at consumers only that hold something of this provider")
    add("--max-count", type=_count, metavar="N", help="repair so many at most")
    text = "the exit codes of `nova-manage placement` audit or heal_allocations (default %(default)s)"
    add("--exit-codes", choices=tuple(CODES), default="kilonova", help=text)
    add("--only-database", action="store_true", help="do not compare with servers")
    add("--os-cloud", metavar="NAME", help="the cloud of clouds.yaml as whose administrator servers are listed")
    add("--region", metavar="NAME", help="region of the catalogue (default: that of the cloud, or any)")
    text = "leave consumers and servers alone that are younger (default %(default)g)"
    add("--age", type=configuration.seconds, default=_AGE, metavar="SECONDS", help=text)
    text = "time between the two looks at what seems wrong with servers (default %(default)g)"
    add("--pause", type=configuration.seconds, default=_PAUSE, metavar="SECONDS", help=text)


def run(arguments: argparse.Namespace, conf: Any) -> int:
    """Look, repair if asked to, and show what was found."""
    from kilonova.conf import databases
    from kilonova.placement.store.prepare import REVISIONS
    from kilonova.sql import migrate, reach

    database = databases.open_database(conf, "placement_database")
    report = Report(arguments.fix, arguments.dry_run, limit=arguments.max_count, codes=arguments.exit_codes)
    report.wants = lambda finding: not arguments.check or finding.check in arguments.check
    try:
        reach.wait(database, arguments.wait, say=configuration.say)
        with reach.in_words(database):
            migrate.require(database, REVISIONS)
            if not (arguments.consumer or arguments.provider):
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
    """What was found and done. failure: why it could not go on.

    limit: how many are repaired at most. codes: whose exit codes. wants: what is looked at.
    """

    fix: bool
    dry_run: bool
    rows: list[tuple[str, str, str, str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    failure: str = ""
    wrong: int = 0
    repaired: int = 0
    beyond: int = 0
    limit: int | None = None
    codes: str = "kilonova"
    wants: Callable[[Finding], bool] = lambda _finding: True

    def add(self, finding: Finding, mend: Callable[[], str], *, can: bool = True) -> None:
        """One finding, put right by `mend` where that is wanted; it answers why not. can: it may be tried."""
        if not self.wants(finding):
            return
        done = ""
        if not finding.warning:
            self.wrong += 1
            if self.fix:
                done = (_WOULD if can else "") if self.dry_run else self._mended(mend)
        result = "Warning" if finding.warning else "Wrong"
        self.rows.append((finding.check, result, finding.subject, finding.text, done))

    def show(self, form: str) -> int:
        """Print it; the exit code."""
        if self.rows or form == "json":
            tables.show(COLUMNS, self.rows, form)
        for note in self.notes:
            configuration.say(note)
        if self.failure:
            print(f"kilonova: {self.failure}", file=sys.stderr)
        else:
            configuration.say(self._summary())
        return CODES[self.codes](self)

    def _mended(self, mend: Callable[[], str]) -> str:
        if self.limit is not None and self.repaired >= self.limit:
            self.beyond += 1
            return f"left: {_ENOUGH}"
        reason = mend()
        self.repaired += not reason
        return f"left: {reason}" if reason else _DONE

    def _summary(self) -> str:
        if not self.wrong:
            return "All is well."
        return f"{self.wrong} wrong, {self.repaired} repaired." if self.fix else f"{self.wrong} wrong."


def _own_code(report: Report) -> int:
    if report.failure:
        return 2
    return 1 if report.wrong > report.repaired else 0


def _audit_code(report: Report) -> int:
    """Nova's: 1 it could not be done, 0 nothing was found, 3 something was, 4 all of it is repaired."""
    if report.failure:
        return 1
    if not report.wrong:
        return 0
    return 4 if report.repaired == report.wrong else 3


def _heal_code(report: Report) -> int:
    """Nova's: 255 it could not be done, 3 something could not be repaired, 1 there is more, 4 there was nothing."""
    if report.failure:
        return 255
    if report.dry_run:
        return 0 if report.wrong else 4
    if report.wrong - report.repaired > report.beyond:
        return 3
    return 1 if report.beyond else 0 if report.repaired else 4


CODES: Final[dict[str, Callable[[Report], int]]] = {
    "kilonova": _own_code, "audit": _audit_code, "heal_allocations": _heal_code,
}  # fmt: skip


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
        text = f"Servers were not compared: {found}"
        if report.codes == "kilonova":
            report.notes.append(text)
        else:
            report.failure = text
        return
    cloud = server_claims.Cloud(found.servers, found.placement, timedelta(seconds=arguments.age))
    looked = cloud.first(holdings.pages(database))
    report.notes += _left_alone(looked, arguments.age)
    looked.suspects = [one for one in looked.suspects if _is_asked_for(arguments, one)]
    for suspect in _again(cloud, looked, arguments.pause):
        report.add(suspect.finding, lambda suspect=suspect: cloud.mend(suspect), can=cloud.mends(suspect))  # type: ignore[misc]


def _is_asked_for(arguments: argparse.Namespace, suspect: Suspect) -> bool:
    if arguments.check and suspect.check not in arguments.check:
        return False
    if arguments.consumer and suspect.consumer != arguments.consumer:
        return False
    holding = suspect.holding
    return not arguments.provider or (holding is not None and arguments.provider in holding.by_provider())


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


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text)):
        raise argparse.ArgumentTypeError(f"{text} is not a number above 0")
    return int(text)
