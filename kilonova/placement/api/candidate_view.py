"""Candidates as the API writes them.

The newest shape is what schedulers ask for a thousand at a time: summaries are kept encoded with the snapshot, and
answers are written by one template per pattern of equal providers. Older shapes are built as plain documents.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import chain, repeat
from typing import Any

import numpy as np

from kilonova.core import json
from kilonova.placement.candidates.request import Answers, Slot
from kilonova.placement.candidates.snapshot import Ints, Rows, Shown, Snapshot, provider_numbers
from kilonova.placement.store.names import Names

Pattern = tuple[int, ...]
"""Per slot the number of its provider among the different ones of an answer, in order of appearance."""

_MARK = re.compile("<([0-9]+)>")
_MANY_SLOTS = 18  # the product of the numbers up to 20 is below 2**63


def encoded(answers: Answers, snapshot: Snapshot, names: Names) -> bytes:
    """The body of 1.34 and later."""
    table = _table(answers)
    requests = _requests(answers, table, snapshot, names)
    rows = _summary_rows(table, snapshot, True)
    summaries = list(map(snapshot.fragments.__getitem__, rows))
    if None in summaries:
        summaries = [kept or _fragment(snapshot, row, names) for row, kept in zip(rows, summaries, strict=True)]
    return _body(requests, summaries)  # type: ignore[arg-type]  # none is None by now


def _body(requests: Iterable[str], summaries: Iterable[bytes]) -> bytes:
    return b"".join(
        (b'{"allocation_requests":[', ",".join(requests).encode(), b'],"provider_summaries":{',
         b",".join(summaries), b"}}")
    )  # fmt: skip


def _table(answers: Answers) -> Rows:
    """The answers as an array, one a row."""
    count, width = len(answers.rows), len(answers.slots)
    return np.fromiter(chain.from_iterable(answers.rows), np.int32, count * width).reshape(count, width)


def _requests(answers: Answers, every: Rows, snapshot: Snapshot, names: Names) -> list[str]:
    """The answers, encoded: those of one pattern together, since they differ in UUIDs only."""
    found = [""] * len(every)
    for places in _alike(_pattern_numbers(every)):
        table = every[places]
        pattern, _ = _pattern(table[0].tolist())
        columns: list[Iterable[str]] = []
        for n, text in enumerate(_MARK.split(_template(answers.slots, pattern, names))):
            if n % 2 == 0:
                columns.append(repeat(text))
            else:
                rows = table[:, pattern.index(int(text))].tolist()
                columns.append([_shown(snapshot, row).uuid for row in rows])
        texts = map("".join, zip(*columns, strict=False))
        if len(places) == len(found):
            return list(texts)
        for place, text in zip(places, texts, strict=True):
            found[place] = text
    return found


def _alike(numbers: Ints) -> list[list[int]]:
    """The places of each number."""
    order = np.argsort(numbers, kind="stable")
    starts = np.nonzero(np.diff(numbers[order]))[0] + 1
    return [places.tolist() for places in np.split(order, starts) if len(places)]


def _pattern_numbers(table: Rows) -> Ints:
    """A number per answer, equal where their patterns are: where each slot's provider stands for the first time."""
    if table.shape[1] > _MANY_SLOTS:
        seen: dict[Pattern, int] = {}
        return np.array([seen.setdefault(_pattern(rows)[0], len(seen)) for rows in table.tolist()], np.int64)
    numbers = np.zeros(len(table), np.int64)
    for slot in range(table.shape[1]):
        first = np.full(len(table), slot)
        for before in range(slot - 1, -1, -1):
            first[table[:, before] == table[:, slot]] = before
        numbers = numbers * (slot + 1) + first
    return numbers


def older(
    answers: Answers, snapshot: Snapshot, names: Names, *, nested: bool, by_provider: bool, traits: bool,
    all_classes: bool,
) -> bytes:  # fmt: skip
    """The body of versions before 1.34. Each answer is encoded by itself: documents take many times their text."""
    asked = {class_id for slot in answers.slots for class_id, _ in slot.needs}
    requests = []
    for rows in answers.rows:
        pattern, distinct = _pattern(rows)
        merged = _merged(answers.slots, pattern, names)
        entries = {_shown(snapshot, row).uuid: merged[n] for n, row in enumerate(distinct)}
        requests.append(json.dump_str({"allocations": _allocations(entries, by_provider)}))
    summaries = []
    for row in _summary_rows(_table(answers), snapshot, nested):
        shown = _shown(snapshot, row)
        classes = set(shown.classes) if all_classes else asked
        summary = _summary(snapshot, row, names, classes, traits=traits, nested=nested)
        summaries.append(_keyed(shown.uuid, summary))
    return _body(requests, summaries)


def _allocations(entries: dict[str, dict[str, int]], by_provider: bool) -> Any:
    if by_provider:
        return {uuid: {"resources": resources} for uuid, resources in entries.items()}
    return [{"resource_provider": {"uuid": uuid}, "resources": resources} for uuid, resources in entries.items()]


def _shown(snapshot: Snapshot, row: int) -> Shown:
    shown = snapshot.shown[row]
    assert shown is not None
    return shown


def _pattern(rows: Sequence[int]) -> tuple[Pattern, list[int]]:
    numbers: dict[int, int] = {}
    pattern = tuple(numbers.setdefault(row, len(numbers)) for row in rows)
    return pattern, list(numbers)


def _merged(slots: Sequence[Slot], pattern: Pattern, names: Names) -> list[dict[str, int]]:
    """Amounts per provider of the pattern; what several groups ask of one provider is one entry."""
    merged: list[dict[str, int]] = [{} for _ in set(pattern)]
    for number, slot in zip(pattern, slots, strict=True):
        for class_id, amount in slot.needs:
            name = names.class_names[class_id]
            merged[number][name] = merged[number].get(name, 0) + amount
    return merged


def _template(slots: Sequence[Slot], pattern: Pattern, names: Names) -> str:
    """An answer with `<n>` where the UUID of the pattern's n-th provider goes."""
    allocations = {
        f"<{n}>": {"resources": resources}
        for n, resources in enumerate(_merged(slots, pattern, names))
        if resources  # a group without resources is in the mappings only
    }
    mappings: dict[str, list[str]] = {}
    for number, slot in zip(pattern, slots, strict=True):
        there = mappings.setdefault(slot.suffix, [])
        if f"<{number}>" not in there:
            there.append(f"<{number}>")
    return json.dump_str({"allocations": allocations, "mappings": mappings})


def _summary_rows(table: Rows, snapshot: Snapshot, trees: bool) -> list[int]:
    """The rows to summarise: those in answers, and with `trees` everything in their trees."""
    used = np.zeros(len(snapshot), np.bool_)
    used[table] = True
    if trees and not snapshot.flat:
        roots = np.zeros(len(snapshot), np.bool_)
        roots[snapshot.root[used]] = True
        used = roots[snapshot.root] & snapshot.alive
    rows: list[int] = np.nonzero(used)[0].tolist()
    return rows


def _summary(
    snapshot: Snapshot, row: int, names: Names, classes: set[int], *, traits: bool, nested: bool
) -> dict[str, Any]:
    shown = _shown(snapshot, row)
    resources = {}
    for class_id in shown.classes:
        if class_id in classes:
            capacity, used = provider_numbers(snapshot, row, class_id)
            resources[names.class_names[class_id]] = {"capacity": capacity, "used": used}
    body: dict[str, Any] = {"resources": resources}
    if traits:
        body["traits"] = [names.trait_names[trait] for trait in shown.traits]
    if nested:
        body |= {"parent_provider_uuid": shown.parent_uuid, "root_provider_uuid": shown.root_uuid}
    return body


def _fragment(snapshot: Snapshot, row: int, names: Names) -> bytes:
    """One provider's summary with its key, encoded; kept until the provider changes."""
    shown = _shown(snapshot, row)
    body = _summary(snapshot, row, names, set(shown.classes), traits=True, nested=True)
    fragment = _keyed(shown.uuid, body)
    snapshot.fragments[row] = fragment
    return fragment


def _keyed(uuid: str, summary: dict[str, Any]) -> bytes:
    return b'"' + uuid.encode() + b'":' + json.dumps(summary)
