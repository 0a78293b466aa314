"""Verdicts in groups: how many hosts one thing spoke against, with what its numbers are from least to most.

"112 hosts: it has 50 to 63 servers, the limit is 50" rather than 112 sentences. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from kilonova.core.decision import Reason
from kilonova.scheduler.verdict import Verdict

GROUPS = 20
WORDS = 3
LONGEST = 300
"""Characters of one sentence; what operators and users wrote may be in it."""
_PLAIN = frozenset({int, str, datetime, type(None)})
"""Types whose equal values have equal text, also of one with another."""


def grouped(verdicts: Iterable[Verdict]) -> tuple[Reason, ...]:
    """The groups, largest first; those after the first `GROUPS` are counted together."""
    numbers: dict[str, list[tuple[Any, ...]]] = {}
    for verdict in verdicts:
        numbers.setdefault(verdict.reason, []).append(verdict.numbers)
    groups = sorted(numbers.items(), key=lambda entry: -len(entry[1]))
    found = [Reason(len(rows), sentence(template, rows)) for template, rows in groups[:GROUPS]]
    if rest := sum(len(rows) for _, rows in groups[GROUPS:]):
        found.append(Reason(rest, "other reasons"))
    return tuple(found)


def sentence(template: str, rows: Sequence[tuple[Any, ...]]) -> str:
    """The template over all rows at once: what is equal as it is, numbers as a range, few words as a list."""
    shown = [_spread(column) for column in zip(*rows, strict=False)]
    return shortened((template or "it does not pass").format(*shown))


def shortened(text: str, longest: int = LONGEST) -> str:
    """The text, cut where it is long."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def nearest(refused: Sequence[tuple[str, Verdict]]) -> tuple[str, str] | None:
    """Of some refused hosts the one that missed by least, and by what: two numbers that are close, else the first."""
    if not refused:
        return None
    host, verdict = min(refused, key=lambda row: _distance(row[1].numbers))
    return host, shortened(str(verdict))


def _distance(numbers: tuple[Any, ...]) -> float:
    values = [value for value in numbers if _is_number(value)]
    if len(values) != 2:
        return float("inf")
    return float(abs(values[0] - values[1])) / (max(abs(values[0]), abs(values[1])) or 1)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _spread(column: Sequence[Any]) -> str:
    if set(map(type, column)) <= _PLAIN:
        column = list(dict.fromkeys(column))  # thousands of hosts, few values: before any is made text
    distinct = list(dict.fromkeys(value if _is_number(value) else str(value) for value in column))
    if len(distinct) == 1:
        return str(distinct[0])
    if all(map(_is_number, distinct)):
        return f"{min(distinct)} to {max(distinct)}"
    more = len(distinct) - WORDS
    return ", ".join(map(str, distinct[:WORDS])) + (f" and {more} more" if more > 0 else "")
