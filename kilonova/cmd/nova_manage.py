"""`nova-manage`: what of it there is, under the names that operators and their scripts know.

    nova-manage [--config-file FILE] cell_v2 ACTION …    is    kilonova cell ACTION …
    nova-manage [--config-file FILE] db sync|version     is    kilonova db sync|version --cell
    nova-manage [--config-file FILE] api_db sync|version is    kilonova db sync|version --api
    nova-manage [--config-file FILE] placement audit     is    kilonova placement audit (3 when something was found)

The exit code is that of the action; 2 for a category or an action that is not there.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Final, NoReturn

from kilonova.cmd import main

_VALUES: Final = ("--config-file", "--wait")
_IGNORED: Final = ("--debug", "-d", "--verbose", "-v")
_IGNORED_VALUES: Final = ("--config-dir", "--log-file", "--log-dir")


def run(arguments: Sequence[str]) -> int:
    """Translate the words and run the `kilonova` command that they mean."""
    options, words = _split(list(arguments))
    if words[:1] in ([], ["help"]) or arguments[:1] in (["-h"], ["--help"]):
        print(_usage(), file=sys.stdout if arguments else sys.stderr)
        return 0 if arguments else 2
    category, rest = words[0], words[1:]
    if category not in CATEGORIES:
        print(f"nova-manage: There is no {category} here; there are {', '.join(CATEGORIES)}.", file=sys.stderr)
        return 2
    code = main.main(CATEGORIES[category](options, rest))
    return _AUDIT_CODES.get(code, code) if category == "placement" else code


def script() -> NoReturn:
    """The console script."""
    sys.exit(run(sys.argv[1:]))


def _split(words: list[str]) -> tuple[list[str], list[str]]:
    """The options before the category that mean something to us, and everything from the category on."""
    options: list[str] = []
    while words and words[0].startswith("-"):
        word = words.pop(0)
        name, separator, _ = word.partition("=")
        values = [] if separator or name in _IGNORED or not words else [words.pop(0)]
        if name not in (*_IGNORED, *_IGNORED_VALUES):
            options += [word, *values]
    return options, words


def _cells(options: list[str], rest: list[str]) -> list[str]:
    return ["cell", *options, *rest]


def _database(kind: str) -> Callable[[list[str], list[str]], list[str]]:
    def words(options: list[str], rest: list[str]) -> list[str]:
        chosen = [] if not rest or rest[0].startswith("-") or "--local_cell" in rest else [f"--{kind}"]
        return ["db", *options, *rest[:1], *chosen, *rest[1:]]

    return words


_PLACEMENT: Final = {"audit": ["audit"], "heal_allocations": ["heal"]}
_AUDIT_CODES: Final = {1: 3, 2: 1}
"""What our audit ends with to what Nova's does: something was found, it could not be done."""


def _placement(options: list[str], rest: list[str]) -> list[str]:
    """Nova's two words for comparing servers with Placement; `--delete` puts right what was found."""
    action = _PLACEMENT.get(rest[0] if rest else "", rest[:1])
    words = ["--fix" if word == "--delete" else word for word in rest[1:] if word not in _IGNORED]
    return ["placement", *options, *action, *words]


CATEGORIES: Final[dict[str, Callable[[list[str], list[str]], list[str]]]] = {
    "cell_v2": _cells,
    "db": _database("cell"),
    "api_db": _database("api"),
    "placement": _placement,
}


def _usage() -> str:
    return "usage: nova-manage [--config-file FILE] {cell_v2,db,api_db,placement} ACTION [options]\n\n" + (
        "`nova-manage CATEGORY --help` shows a category's actions. More is in the `kilonova` command."
    )


if __name__ == "__main__":
    script()
