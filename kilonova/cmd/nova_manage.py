"""`nova-manage`: what of it there is, under the names that operators and their scripts know.

    nova-manage [--config-file FILE] cell_v2 ACTION …    is    kilonova cell ACTION …
    nova-manage [--config-file FILE] db sync|version     is    kilonova db sync|version --cell
    nova-manage [--config-file FILE] api_db sync|version is    kilonova db sync|version --api
    nova-manage [--config-file FILE] placement audit     is    kilonova placement audit
                                     … heal_allocations  is    kilonova placement heal --check missing
                                     … sync_aggregates   is    kilonova aggregates sync

The exit code is that of the action, and for `placement` Nova's; 2 for a category or an action that is not there, 127
for options of `placement` that cannot be used.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
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
    try:
        return main.main(CATEGORIES[category](options, rest))
    except Unusable as error:
        print(f"nova-manage: {error}", file=sys.stderr)
        return _UNUSABLE


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


class Unusable(ValueError):
    """Options of an action that cannot be used together, or are not there; the text is a sentence."""


_UNUSABLE: Final = 127
_AUDIT: Final = {"--delete": ("--fix", "--check", "orphan"), "--resource_provider": ("--provider",)}
_HEAL: Final = {"--instance": ("--consumer",), "--skip-port-allocations": ()}
_NOT_HERE: Final = {
    "--cell": "--cell is not there: servers are asked of the API, which knows them of all cells",
    "--force": "--force is not there: what a server holds already, only its administrator can say is wrong",
}


def _placement(options: list[str], rest: list[str]) -> list[str]:
    """Nova's words for comparing servers and aggregates with Placement. Unusable."""
    action, words = (rest[0] if rest else ""), [word for word in rest[1:] if word not in _IGNORED]
    if action == "audit":
        return ["placement", *options, "audit", "--exit-codes", "audit", *_translated(words, _AUDIT)]
    if action == "heal_allocations":
        _check_heal(words)
        own = ("--exit-codes", "heal_allocations", "--check", "missing")
        return ["placement", *options, "heal", *own, *_translated(words, _HEAL)]
    if action == "sync_aggregates":
        return ["aggregates", *options, "sync", *words]
    return ["placement", *options, *rest[:1], *words]


def _translated(words: list[str], table: Mapping[str, tuple[str, ...]]) -> list[str]:
    found: list[str] = []
    for word in words:
        name, separator, value = word.partition("=")
        known = table.get(name)
        found += [word] if known is None else [*known, *([value] if separator else [])]
    return found


def _check_heal(words: list[str]) -> None:
    names = [word.partition("=")[0] for word in words]
    for name, text in _NOT_HERE.items():
        if name in names:
            raise Unusable(f"{text}.")
    if "--max-count" in names:
        at = names.index("--max-count")
        value = words[at].partition("=")[2] or (words[at + 1] if at + 1 < len(words) else "")
        if not (value.isascii() and value.isdigit() and int(value)):
            raise Unusable(f"--max-count takes a number above 0, and {value or 'nothing'} is none.")


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
