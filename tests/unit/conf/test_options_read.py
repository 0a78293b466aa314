"""An option that is declared is read by something; Nova's others parse and warn (kilonova.conf.load)."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import kilonova
from kilonova.conf.load import APPLICATIONS

PACKAGE = Path(kilonova.__file__).parent

# This list may only shrink: each entry is a promise to an operator that is not kept yet.
UNREAD: frozenset[tuple[str, str]] = frozenset()

READ_WHOLE = {"cors"}  # handed to oslo.middleware as a whole (kilonova.http.middleware)


@cache
def sources() -> tuple[str, ...]:
    """The package's files without the rows themselves."""
    readers = ("load.py", "databases.py")
    paths = [path for path in PACKAGE.rglob("*.py") if path.parent.name != "conf" or path.name in readers]
    return tuple(path.read_text(encoding="utf-8") for path in paths)


@cache
def settings() -> str:
    """The files that take options over by their names, in a loop or as fields of the same name."""
    return "\n".join(text for text in sources() if "getattr(conf" in text or "getattr(options" in text)


def is_read(group: str, name: str) -> bool:
    """Whether a file reads `conf.name`, `….group.name`, or `group.name`/`options.name` of a group at hand."""
    direct = rf"\bconf\.{name}\b" if group == "DEFAULT" else rf"\.{group}\.{name}\b|\b(group|options)\.{name}\b"
    return any(re.search(direct, text) for text in sources()) or bool(re.search(rf"\b{name}\b", settings()))


def unread() -> set[tuple[str, str]]:
    return {
        (group, option.dest)
        for rows in APPLICATIONS.values()
        for group, options in rows.items()
        for option in options
        if group not in READ_WHOLE and not is_read(group, option.dest)
    }


def test_nothing_is_declared_that_nobody_reads() -> None:
    assert unread() - UNREAD == set()


def test_the_list_of_unread_options_has_no_entry_that_is_read() -> None:
    assert UNREAD - unread() == set()
