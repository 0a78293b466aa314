"""Declared options and policy rules are the release's own: name, type, default, bounds, choices, scopes."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from oslo_config import cfg

from kilonova.conf import load
from kilonova.http.policy import Rule, compute_rules

HERE = Path(__file__).parent

# Kilonova's own default, and why. This list may only shrink.
OTHER_DEFAULTS = {
    ("DEFAULT", "host"): "filled in when the configuration is loaded",
    ("DEFAULT", "my_ip"): "filled in when the configuration is loaded",
    ("DEFAULT", "state_path"): "the reference's is the directory of its own code",
}

# Bounds that the reference does not state, since a pool without connections serves nobody. This list may only shrink.
OTHER_BOUNDS = {
    (group, name) for group in ("api_database", "database") for name in ("max_pool_size", "max_overflow")
}


@cache
def contract() -> dict[tuple[str, str], dict[str, Any]]:
    rows = json.loads((HERE / "config-options.json").read_text())
    return {(row["group"], row["name"].replace("-", "_")): row for row in rows}


def declared() -> list[tuple[str, cfg.Opt]]:
    """Declared options that the contract knows."""
    pairs = [(group, option) for group, options in load.COMPUTE.items() for option in options]
    return [(group, option) for group, option in pairs if (group, option.dest) in contract()]


@pytest.mark.parametrize(("group", "option"), declared(), ids=lambda value: getattr(value, "name", value))
def test_a_declared_option_is_novas(group: str, option: cfg.Opt) -> None:
    row = contract()[(group, option.dest)]
    assert type(option.type).__name__ == row["type"]
    for bound in ("min", "max") if (group, option.dest) not in OTHER_BOUNDS else ():
        assert getattr(option.type, bound, None) == row.get(bound)
    assert list(getattr(option.type, "choices", None) or ()) == row.get("choices", [])
    if (group, option.dest) not in OTHER_DEFAULTS:
        assert option.default == row["default"]


def test_the_list_of_other_defaults_has_no_entry_that_is_the_same() -> None:
    for group, option in declared():
        if (group, option.dest) in OTHER_DEFAULTS:
            assert option.default != contract()[(group, option.dest)]["default"]


def test_every_option_of_the_release_is_known() -> None:
    known = json.loads(Path(load.__file__).with_name("known_options.json").read_text())
    assert {(group, name) for group, names in known.items() for name in names} == set(contract())


def test_the_policy_rules_are_the_releases() -> None:
    rows = json.loads((HERE / "policies.json").read_text())
    expected = [
        Rule(
            row["name"],
            row["default"],
            tuple(row["scopes"]),
            tuple(row.get("operations", ())),
            (old["name"], old["default"], old["since"]) if (old := row.get("deprecated")) else None,
            row.get("deprecated_for_removal", False),
        )
        for row in rows
    ]
    assert list(compute_rules()) == expected
