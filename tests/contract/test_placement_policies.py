"""Placement's rules against those of the release (`placement_policies.json`: names, defaults, scopes, operations)."""

from __future__ import annotations

import json
from pathlib import Path

from kilonova.placement.app import OPS
from kilonova.placement.policy import rules

ROWS = {row["name"]: row for row in json.loads(Path(__file__).with_name("placement_policies.json").read_text())}


def test_names_defaults_and_scopes_are_the_releases() -> None:
    found = {
        rule.name: (rule.default, list(rule.scopes), rule.deprecated and list(rule.deprecated[:2]))
        for rule in rules(OPS)
    }
    assert found == {
        name: (row["default"], row["scopes"], list(row["deprecated"].values()) if "deprecated" in row else None)
        for name, row in ROWS.items()
    }


def test_each_rule_guards_the_operations_that_it_guards_in_the_release() -> None:
    found = {rule.name: {_plain(one) for one in rule.operations} for rule in rules(OPS)}
    assert found == {name: {_plain(one) for one in row.get("operations", ())} for name, row in ROWS.items()}


def _plain(operation: str) -> str:
    """Method and path; what its variables are called does not matter."""
    return "".join("{}" if n % 2 else part for n, part in enumerate(operation.replace("}", "{").split("{")))
