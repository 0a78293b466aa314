"""A case's figures as a table: ours, the peer's, how many times better ours is, and what is wanted."""

from __future__ import annotations

import re
from typing import Any

from benchmarks.cloud import Figures

TARGETS: tuple[tuple[str, str, str], ...] = (
    (r"flat 10000 ", r"candidates: simple, limit 1000", "≥ 250 times"),
    (r"flat 100000 ", r"candidates: .*limit 1000?$", "≤ 50 ms"),
    (r"nested ", r"candidates: (simple, limit 1000|disk.*isolate|2 VFs.*|same_subtree|group without.*)$", "≥ 40 times"),
    (r"wide ", r"candidates: 6 groups, limit 1000", "≤ 20 ms"),
    (r"sqlite", r"claims: 8 clients", "≥ 500 /s"),
    (r"postgresql|mariadb", r"claims: 8 clients", "≥ 20 times"),
    (r"", r"claims: until", "none oversold"),
    (r"flat 10000 ", r"inside: refresh", "with_usage ≤ 0.1 ms"),
)
"""Cases and figures, as regular expressions, to what is wanted of them."""

_HEAD = ("figure", "kilonova", "peer", "times, wall", "times, CPU", "wanted")


def table(case: str, figures: dict[str, dict[str, Figures]]) -> str:
    """Markdown. A cell: p50 / p99 ms, [CPU ms, the database's part of it], what comes a second, what went wrong."""
    rows = [_HEAD, ("---",) * len(_HEAD)]
    peer = figures["peer"]
    for name, own in figures["kilonova"].items():
        other = peer.get(name, {})
        rows.append((name, _cell(own), _cell(other), *_times(own, other), target(case, name)))
    for name, own in figures["inside"].items():
        name = f"inside: {name}"
        rows.append((name, ", ".join(f"{key} {value}" for key, value in own.items()), "", "", "", target(case, name)))
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def target(case: str, name: str) -> str:
    """What is wanted of a figure; nothing for most."""
    return next((wanted for of, what, wanted in TARGETS if re.search(of, case) and re.match(what, name)), "")


def _cell(figures: Figures) -> str:
    words: list[str] = []
    if "p50" in figures:
        database = f", {figures['database']}" if "database" in figures else ""
        words.append(f"{figures['p50']} / {figures['p99']} [{figures['cpu']}{database}]")
    words += [f"{value} {_UNITS.get(key, key)}" for key, value in figures.items() if key not in _ELSEWHERE]
    return ", ".join(words)


_ELSEWHERE = ("p50", "p99", "cpu", "n", "database", "foreign", "bytes")
_UNITS = {"per_s": "/s", "writes_per_s": "writes/s", "rss_mb": "MB", "kb_per_provider": "kB a provider"}


def _times(own: dict[str, Any], other: dict[str, Any]) -> tuple[str, str]:
    """By rates where there are any, else by medians; and by CPU."""

    def ratio(large: float | None, small: float | None) -> str:
        return f"{large / small:.3g}" if large and small else ""

    wall = ratio(own.get("per_s"), other.get("per_s")) or ratio(other.get("p50"), own.get("p50"))
    return wall or ratio(other.get("rss_mb"), own.get("rss_mb")), ratio(other.get("cpu"), own.get("cpu"))
