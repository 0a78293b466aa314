"""Tables on standard output, as `nova-manage` and `openstack` draw them, and the same as JSON for programs.

They are as wide as what is in them: scripts cut them at the bars.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Sequence
from typing import Any


def options(parser: argparse.ArgumentParser) -> None:
    """Add the option that chooses."""
    parser.add_argument("-f", "--format", choices=("table", "json"), default="table", help="default: %(default)s")


def show(columns: Sequence[str], rows: Iterable[Sequence[Any]], form: str = "table") -> None:
    """Print rows; as JSON they are objects whose keys are the columns in lower case."""
    rows = list(rows)
    if form == "json":
        keys = [column.lower().replace(" ", "_") for column in columns]
        print(json.dumps([dict(zip(keys, row, strict=True)) for row in rows], indent=2))
        return
    texts = [["" if value is None else str(value) for value in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(columns, *texts, strict=True)]
    rule = "+" + "+".join("-" * (width + 2) for width in widths) + "+"
    print(rule, _line(columns, widths), rule, *(_line(row, widths) for row in texts), rule, sep="\n")


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    return "|" + "|".join(f" {text:<{width}} " for text, width in zip(row, widths, strict=True)) + "|"
