"""Candidates from query string to answer, mappings and summaries included, against trying everything."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from kilonova.placement.app import make_app
from kilonova.placement.candidates.request import Group, Query
from kilonova.placement.candidates.snapshot import Facts
from kilonova.placement.store.prepare import prepare
from kilonova.sql.engine import Database
from tests.http.placement.conftest import Client, allocation
from tests.unit.placement.candidates import reference
from tests.unit.placement.candidates.worlds import SHARES, queries, worlds

EXAMPLES = 40
CLASSES = {1: "VCPU", 2: "MEMORY_MB", 3: "CUSTOM_THREE"}
TRAITS = {1: "HW_CPU_X86_AVX2", 2: "CUSTOM_TWO", 3: "CUSTOM_THREE", SHARES: "MISC_SHARES_VIA_AGGREGATE"}
CONSUMER = "00000000-0000-4000-8000-00000000000c"

fuzz = settings(
    max_examples=EXAMPLES, deadline=None, database=None, phases=(Phase.generate,),
    suppress_health_check=list(HealthCheck),
)  # fmt: skip


def _uuid(name: str) -> str:
    """Of a provider or aggregate of the worlds, whose names are short."""
    return f"{name[-4:].encode().hex():0>8}-0000-4000-8000-000000000000"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    database = Database(f"sqlite:///{tmp_path_factory.mktemp('rule')}/placement.db")
    prepare(database)
    client = Client(make_app(database))
    assert client("PUT", "/resource_classes/CUSTOM_THREE").status == 201
    for trait in ("CUSTOM_TWO", "CUSTOM_THREE"):
        assert client("PUT", f"/traits/{trait}").status == 201
    yield client
    database.dispose()


def _ok(client: Client, method: str, path: str, body: Any = None) -> None:
    answer = client(method, path, body)
    assert answer.status < 300, (method, path, answer.body)


def _settle(client: Client, world: list[Facts]) -> None:
    """Make the providers as clients would: what is in use is claimed before the unit rules come."""
    used: dict[str, dict[str, int]] = {}
    for facts in world:
        uuid, parent = _uuid(facts.uuid), None if facts.parent_id is None else _uuid(f"u{facts.parent_id}")
        body = {"name": facts.name, "uuid": uuid} | ({} if parent is None else {"parent_provider_uuid": parent})
        _ok(client, "POST", "/resource_providers", body)
        _stock(client, uuid, {CLASSES[id_]: {"total": numbers[0]} for id_, numbers in facts.inventories.items()})
        taken = {CLASSES[id_]: numbers[1] for id_, numbers in facts.inventories.items() if numbers[1]}
        used |= {uuid: taken} if taken else {}
    if used:
        _ok(client, "PUT", f"/allocations/{CONSUMER}", allocation(used))
    for facts in world:
        uuid = _uuid(facts.uuid)
        _stock(client, uuid, {
            CLASSES[id_]: {"total": total, "min_unit": low, "max_unit": high, "step_size": step}
            for id_, (total, _, low, high, step) in facts.inventories.items()
        })  # fmt: skip
        client.traits(uuid, *(TRAITS[trait] for trait in facts.traits))
        client.aggregates(uuid, *map(_uuid, facts.aggregates))


def _stock(client: Client, uuid: str, inventories: dict[str, Any]) -> None:
    body = {"inventories": inventories, "resource_provider_generation": client.generation(uuid)}
    _ok(client, "PUT", f"/resource_providers/{uuid}/inventories", body)


def _clear(client: Client, world: list[Facts]) -> None:
    client("DELETE", f"/allocations/{CONSUMER}")
    for facts in reversed(world):
        client("DELETE", f"/resource_providers/{_uuid(facts.uuid)}")
    assert client("GET", "/resource_providers").json == {"resource_providers": []}


def _any_of(members: frozenset[Any], name: Any) -> str:
    texts = sorted(name(member) for member in members)
    return texts[0] if len(texts) == 1 else "in:" + ",".join(texts)


def _parameters(group: Group) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    if group.resources:
        found.append(("resources", ",".join(f"{CLASSES[id_]}:{amount}" for id_, amount in group.resources)))
    found += [("required", _any_of(traits, TRAITS.__getitem__)) for traits in group.required]
    if group.forbidden:
        found.append(("required", ",".join(f"!{TRAITS[trait]}" for trait in group.forbidden)))
    found += [("member_of", _any_of(aggregates, _uuid)) for aggregates in group.member_of]
    if group.not_member_of:
        found.append(("member_of", "!in:" + ",".join(map(_uuid, group.not_member_of))))
    if group.in_tree is not None:
        found.append(("in_tree", _uuid(group.in_tree)))
    return [(name + group.suffix, value) for name, value in found]


def _string(query: Query) -> str:
    pairs = [pair for group in query.groups for pair in _parameters(group)]
    pairs.append(("group_policy", "isolate" if query.isolate else "none"))
    pairs += [("same_subtree", ",".join(sorted(suffixes))) for suffixes in query.same_subtree]
    root = [TRAITS[trait] for trait in query.root_required] + [f"!{TRAITS[trait]}" for trait in query.root_forbidden]
    if root:
        pairs.append(("root_required", ",".join(root)))
    if query.limit is not None:
        pairs.append(("limit", str(query.limit)))
    return urlencode(pairs)


def _asked(query: Query) -> Query:
    """The request as a query string can ask: of a group without resources and conditions it says nothing."""
    return replace(query, groups=tuple(group for group in query.groups if _parameters(group)))


def _is_refused(query: Query) -> bool:
    """Whether the request contradicts itself, asks for nothing, or places a group beside none."""
    placed = frozenset[str]().union(*query.same_subtree)
    return (
        not placed <= {group.suffix for group in query.groups}
        or any(traits <= group.forbidden for group in query.groups for traits in group.required)
        or bool(query.root_required & query.root_forbidden)
        or not any(group.resources for group in query.groups)
        or any(not group.resources and group.suffix not in placed for group in query.groups)
    )


def _answers(query: Query, choices: set[tuple[str, ...]]) -> list[str]:
    """What the API says of each choice, as sorted texts."""
    slots = reference._slots(query)
    found = []
    for choice in choices:
        allocations: dict[str, dict[str, int]] = {}
        mappings: dict[str, set[str]] = {}
        for uuid, (group, needs) in zip(choice, slots, strict=True):
            mappings.setdefault(group.suffix, set()).add(_uuid(uuid))
            for id_, amount in needs:
                there = allocations.setdefault(_uuid(uuid), {})
                there[CLASSES[id_]] = there.get(CLASSES[id_], 0) + amount
        found.append(_text(allocations, {key: sorted(uuids) for key, uuids in mappings.items()}))
    return sorted(found)


def _text(allocations: dict[str, dict[str, int]], mappings: dict[str, list[str]] | None) -> str:
    return json.dumps([allocations, mappings], sort_keys=True)


def _told(document: dict[str, Any]) -> list[str]:
    return sorted(
        _text(
            {uuid: entry["resources"] for uuid, entry in one["allocations"].items()},
            {key: sorted(uuids) for key, uuids in one["mappings"].items()} if "mappings" in one else None,
        )
        for one in document["allocation_requests"]
    )


def _summaries(world: list[Facts], shown: set[str], *, nested: bool) -> dict[str, Any]:
    """Of the providers of these UUIDs."""
    found = {}
    for facts in world:
        if _uuid(facts.uuid) in shown:
            found[_uuid(facts.uuid)] = {
                "resources": {CLASSES[id_]: {"capacity": numbers[0], "used": numbers[1]}
                              for id_, numbers in facts.inventories.items()},
                "traits": sorted(TRAITS[trait] for trait in facts.traits),
            } | ({
                "parent_provider_uuid": None if facts.parent_id is None else _uuid(f"u{facts.parent_id}"),
                "root_provider_uuid": _uuid(f"u{facts.root_id}"),
            } if nested else {})  # fmt: skip
    return found


def _sorted_traits(summaries: dict[str, Any]) -> dict[str, Any]:
    return {uuid: one | {"traits": sorted(one["traits"])} for uuid, one in summaries.items()}


def _in_trees(world: list[Facts], choices: set[tuple[str, ...]]) -> set[str]:
    root_of = {facts.uuid: facts.root_id for facts in world}
    roots = {root_of[uuid] for choice in choices for uuid in choice}
    return {_uuid(facts.uuid) for facts in world if facts.root_id in roots}


@fuzz
@given(world=worlds(), asked=st.lists(queries().map(_asked), min_size=3, max_size=3), limit=st.integers(1, 3))
def test_the_newest_version_answers_what_trying_everything_gives(
    service: Client, world: list[Facts], asked: list[Query], limit: int
) -> None:
    _settle(service, world)
    try:
        for query in asked:
            answer = service("GET", f"/allocation_candidates?{_string(query)}")
            if _is_refused(query):
                assert answer.status == 400, answer.body
                continue
            assert answer.status == 200, answer.body
            every = reference.find(world, query, SHARES)
            assert _told(answer.json) == _answers(query, every)
            assert _sorted_traits(answer.json["provider_summaries"]) == _summaries(
                world, _in_trees(world, every), nested=True
            )
            some = service("GET", f"/allocation_candidates?{_string(replace(query, limit=limit))}").json
            assert len(some["allocation_requests"]) == min(limit, len(every))
            assert set(_told(some)) <= set(_told(answer.json))
    finally:
        _clear(service, world)


def _as_in_1_28(query: Query) -> Query:
    """Without what came later; groups are numbered."""
    groups = tuple(
        replace(
            group, suffix=group.suffix and str(int(group.suffix.removeprefix("_")) + 1), in_tree=None,
            not_member_of=frozenset[str](), required=tuple(traits for traits in group.required if len(traits) == 1),
        )
        for group in query.groups
    )  # fmt: skip
    return replace(query, groups=groups, root_required=frozenset(), root_forbidden=frozenset())


@fuzz
@given(world=worlds(), asked=st.lists(queries(nested=False).map(_as_in_1_28), min_size=3, max_size=3))
def test_before_nesting_the_answers_are_those_of_trying_everything(
    service: Client, world: list[Facts], asked: list[Query]
) -> None:
    _settle(service, world)
    try:
        for query in asked:
            parts = [part for part in _string(query).split("&") if not part.startswith("required")]
            for group in query.groups:
                traits = [value for name, value in _parameters(group) if name.startswith("required")]
                parts += [urlencode({"required" + group.suffix: ",".join(traits)})] if traits else []
            answer = service.at("1.28")("GET", "/allocation_candidates?" + "&".join(parts))
            if _is_refused(query):
                assert answer.status == 400, answer.body
                continue
            assert answer.status == 200, answer.body
            every = reference.find(world, query, SHARES)
            without = sorted(_text(json.loads(one)[0], None) for one in _answers(query, every))
            assert _told(answer.json) == without
            used = {_uuid(uuid) for choice in every for uuid in choice}
            assert _sorted_traits(answer.json["provider_summaries"]) == _summaries(world, used, nested=False)
    finally:
        _clear(service, world)
