"""Candidates as the API writes them.

The newest shape is what schedulers ask for a thousand at a time: summaries are kept encoded with the snapshot, and
answers are written by one template per pattern of equal providers. Older shapes are built as plain documents.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kilonova.core import json
from kilonova.placement.candidates.request import Answers, Slot
from kilonova.placement.candidates.snapshot import Shown, Snapshot, provider_numbers
from kilonova.placement.store.names import Names

Pattern = tuple[int, ...]
"""Per slot the number of its provider among the different ones of an answer, in order of appearance."""


def encoded(answers: Answers, snapshot: Snapshot, names: Names) -> bytes:
    """The body of 1.34 and later."""
    templates: dict[Pattern, str] = {}
    requests: list[str] = []
    for rows in answers.rows:
        pattern, distinct = _pattern(rows)
        template = templates.get(pattern)
        if template is None:
            template = templates[pattern] = _template(answers.slots, pattern, names)
        uuids = [_shown(snapshot, row).uuid for row in distinct]
        requests.append(template.format(*uuids))
    summaries = [
        snapshot.fragments[row] or _fragment(snapshot, row, names) for row in _summary_rows(answers, snapshot, True)
    ]
    return b"".join(
        (b'{"allocation_requests":[', ",".join(requests).encode(), b'],"provider_summaries":{',
         b",".join(summaries), b"}}")
    )  # fmt: skip


def document(
    answers: Answers, snapshot: Snapshot, names: Names, *, nested: bool, by_provider: bool, traits: bool,
    all_classes: bool,
) -> dict[str, Any]:  # fmt: skip
    """The body of versions before 1.34."""
    asked = {class_id for slot in answers.slots for class_id, _ in slot.needs}
    requests = []
    for rows in answers.rows:
        pattern, distinct = _pattern(rows)
        merged = _merged(answers.slots, pattern, names)
        entries = {_shown(snapshot, row).uuid: merged[n] for n, row in enumerate(distinct)}
        requests.append({"allocations": _allocations(entries, by_provider)})
    summaries = {}
    for row in _summary_rows(answers, snapshot, nested):
        shown = _shown(snapshot, row)
        summaries[shown.uuid] = _summary(
            snapshot, row, names, set(shown.classes) if all_classes else asked, traits=traits, nested=nested
        )
    return {"allocation_requests": requests, "provider_summaries": summaries}


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
    """An answer with `{n}` where the UUID of the pattern's n-th provider goes."""
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
    text = json.dump_str({"allocations": allocations, "mappings": mappings})
    return text.replace("{", "{{").replace("}", "}}").replace("<", "{").replace(">", "}")


def _summary_rows(answers: Answers, snapshot: Snapshot, trees: bool) -> list[int]:
    """The rows to summarise: those in answers, and with `trees` everything in their trees."""
    used = np.unique(np.array(answers.rows, np.int32)) if answers.rows else np.zeros(0, np.int32)
    if not trees or snapshot.flat:
        return [int(row) for row in used]
    roots = np.zeros(len(snapshot), np.bool_)
    roots[snapshot.root[used]] = True
    return [int(row) for row in np.nonzero(roots[snapshot.root] & snapshot.alive)[0]]


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
    fragment = b'"' + shown.uuid.encode() + b'":' + json.dumps(body)
    snapshot.fragments[row] = fragment
    return fragment
