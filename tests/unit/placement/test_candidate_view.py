"""What is encoded all at once equals what is built answer by answer."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, given, settings

from kilonova.core import json
from kilonova.placement.api import candidate_view
from kilonova.placement.candidates import arrange, search
from kilonova.placement.candidates.request import Answers, Query
from kilonova.placement.candidates.snapshot import Facts, Snapshot
from kilonova.placement.store.names import Names
from tests.unit.placement.candidates.worlds import CLASSES, SHARES, TRAITS, queries, worlds

fuzz = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))

_CLASSES = {id_: f"CUSTOM_CLASS_{id_}" for id_ in CLASSES}
_TRAITS = {id_: f"CUSTOM_TRAIT_{id_}" for id_ in (*TRAITS, SHARES)}
_NAMES = Names(
    {name: id_ for id_, name in _CLASSES.items()}, _CLASSES, {}, {name: id_ for id_, name in _TRAITS.items()}, _TRAITS,
    {}, {},
)  # fmt: skip


def _built(answers: Answers, snapshot: Snapshot) -> list[dict[str, Any]]:
    found = []
    for rows in answers.rows:
        allocations: dict[str, dict[str, int]] = {}
        mappings: dict[str, list[str]] = {}
        for row, slot in zip(rows, answers.slots, strict=True):
            uuid = snapshot.shown[row].uuid  # type: ignore[union-attr]
            if uuid not in mappings.setdefault(slot.suffix, []):
                mappings[slot.suffix].append(uuid)
            for class_id, amount in slot.needs:
                there = allocations.setdefault(uuid, {})
                there[_CLASSES[class_id]] = there.get(_CLASSES[class_id], 0) + amount
        found.append({
            "allocations": {uuid: {"resources": resources} for uuid, resources in allocations.items()},
            "mappings": mappings,
        })  # fmt: skip
    return found


@fuzz
@given(worlds(), queries())
def test_answers_of_every_pattern_are_encoded_in_their_order(world: list[Facts], query: Query) -> None:
    snapshot = arrange.build(world)
    answers = search.find(snapshot, query, sharing=SHARES)
    first = json.loads(candidate_view.encoded(answers, snapshot, _NAMES))
    assert first["allocation_requests"] == _built(answers, snapshot)
    roots = {int(snapshot.root[row]) for rows in answers.rows for row in rows}
    assert set(first["provider_summaries"]) == {
        shown.uuid for row, shown in enumerate(snapshot.shown) if shown and int(snapshot.root[row]) in roots
    }
    assert json.loads(candidate_view.encoded(answers, snapshot, _NAMES)) == first, "the kept summaries differ"
