"""Every operation row that exists equals its entry of the contract; every other entry stands in one shrinking list."""

from __future__ import annotations

import json
import re
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from kilonova.api.compute.rows import OPS
from kilonova.api.compute.versions import VERSIONS
from kilonova.core.context import Context
from kilonova.http.app import App, Service
from kilonova.http.dialect import ComputeDialect
from kilonova.http.op import Op
from kilonova.http.policy import compute_rules
from kilonova.http.versions import Version, at, parse

HERE = Path(__file__).parent
ENTRIES: list[dict[str, Any]] = json.loads((HERE / "operations.json").read_text())
DEVIATIONS: list[dict[str, Any]] = json.loads((HERE / "deviations.json").read_text())
TO_COME = set((HERE / "to_come.txt").read_text().splitlines())

Key = tuple[str, str, str]

# Success codes where the release's answer, which clients see, wins over the table (deviations.json).
OTHER_SUCCESS = {136: {200, 207}, 263: {201, 204}, 249: {200, 202}}


def key_of(method: str, path: str, action: str | None) -> Key:
    return method, re.sub(r"\{[^}]*\}", "{}", path), action or ""


def shown(key: Key) -> str:
    return " ".join(part for part in key if part)


CONTRACT = {key_of(entry["method"], entry["path"], entry["action"]): entry for entry in ENTRIES}
ROWS: dict[Key, list[Op]] = {}
for _op in OPS:
    ROWS.setdefault(key_of(_op.method, _op.path, _op.action), []).append(_op)

EVERY: list[Version] = [parse(text) for text in VERSIONS.lines]


def ranged(text: str) -> list[tuple[str, Version, Version]]:
    """(values, first, last) of `404 (2.1–2.57); 400, 404 (2.58–max)` or of a text without ranges."""
    parts = re.findall(r"([\d, ]*)\((\d+\.\d+)–(max|\d+\.\d+)\)", text)
    if not parts:
        return [(text, EVERY[0], EVERY[-1])]
    return [(values, parse(low), EVERY[-1] if high == "max" else parse(high)) for values, low, high in parts]


def numbers_at(text: str, version: Version) -> set[int]:
    return {
        int(number)
        for values, low, high in ranged(text)
        if low <= version <= high
        for number in re.findall(r"\d{3}", values)
    }


@pytest.mark.parametrize("key", sorted(ROWS), ids=shown)
def test_a_row_is_in_the_contract(key: Key) -> None:
    assert key in CONTRACT, f"{shown(key)} is no operation of the contract"
    if CONTRACT[key]["removed"]:
        assert all(410 in op.errors for op in ROWS[key] if isinstance(op.errors, tuple))


@pytest.mark.parametrize("key", sorted(ROWS), ids=shown)
def test_a_row_has_the_contracts_versions(key: Key) -> None:
    entry = CONTRACT[key]
    if entry["removed"]:
        return
    low, high = parse(entry["min_version"]), parse(entry["max_version"])
    for version in EVERY:
        served = any(version in op.range for op in ROWS[key])
        assert served == (low <= version <= high), f"{shown(key)} at {version}"


@pytest.mark.parametrize("key", sorted(ROWS), ids=shown)
def test_a_row_has_the_contracts_success_and_errors(key: Key) -> None:
    entry = CONTRACT[key]
    for version in EVERY:
        op = next((row for row in ROWS[key] if version in row.range), None)
        if op is None or entry["removed"]:
            continue
        success = OTHER_SUCCESS.get(entry["n"]) or numbers_at(entry["success"], version)
        assert at(op.ok, version) in success, f"{shown(key)} at {version}: {at(op.ok, version)}"
        errors: Any = at(op.errors, version)
        if shown(key) not in MORE_ERRORS:
            assert set(errors) == numbers_at(entry["errors"], version), f"{shown(key)} at {version}: {sorted(errors)}"


MORE_ERRORS: dict[str, str] = {"PUT /servers/{}": "2.104 refuses pins with 409 (microversions.md)"}
"""Rows that declare other errors than the contract, with the reason."""


def test_operations_to_come_answer_as_unmatched_paths() -> None:
    app = App(Service("compute", OPS, None, ComputeDialect(), VERSIONS, project_in_path=True))
    for line in sorted(TO_COME):
        method, path, *action = line.split(" ")
        if action:
            continue
        environ = {
            "REQUEST_METHOD": method, "PATH_INFO": path.replace("{}", "1"), "kilonova.context": Context(project_id="p"),
            "wsgi.input": BytesIO(b""),
        }  # fmt: skip
        started: list[Any] = []
        body = b"".join(app(environ, lambda status, headers, into=started: into.extend((status, headers))))
        assert started[0].startswith("404"), line
        assert body.startswith(b"404 Not Found"), line
        assert not any(name == "OpenStack-API-Version" for name, _ in started[1]), line


@pytest.mark.parametrize("key", sorted(ROWS), ids=shown)
def test_a_row_names_the_contracts_policies(key: Key) -> None:
    named = {rule for op in ROWS[key] for rule in (op.policy, *op.also) if rule}
    assert named == set(CONTRACT[key]["policies"])


def test_every_policy_a_row_names_is_a_rule() -> None:
    rules = {rule.name for rule in compute_rules()}
    named = {rule for op in OPS for rule in (op.policy, *op.also) if rule}
    assert named <= rules


def test_what_has_no_row_stands_in_the_list_of_what_is_to_come() -> None:
    missing = {shown(key) for key in CONTRACT if key not in ROWS}
    assert missing == TO_COME, "the list shrinks with every operation that gets a row, and never grows"


def test_every_deviation_says_what_is_kept() -> None:
    assert all(row["keep"] for row in DEVIATIONS)
