"""Requests made from the API's own description, at versions that differ most: nothing breaks, and every refusal says
what is wrong with which parameter or field."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import jsonschema
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from kilonova.placement.app import make_app
from kilonova.placement.store.prepare import prepare
from kilonova.sql.engine import Database
from tests.http.bad_input.bodies import places, with_value
from tests.http.placement.conftest import Client, Reply

VERSIONS = ("1.0", "1.10", "1.20", "1.28", "1.38", "1.39")
HOST, CONSUMER, AGGREGATE = (f"0000000{n}-0000-4000-8000-000000000000" for n in (1, 2, 3))

LIKELY: dict[str, list[str]] = {
    "uuid": [HOST], "consumer": [CONSUMER], "in_tree": [HOST], "resource_class": ["VCPU", "CUSTOM_A"],
    "resources": ["VCPU:1", "VCPU:1,DISK_GB:2", "VCPU:99"], "limit": ["1", "2"],
    "member_of": [AGGREGATE, "!" + AGGREGATE, f"in:{AGGREGATE},{HOST}"],
    "required": ["HW_CPU_X86_VMX", "!CUSTOM_T", "in:CUSTOM_T,HW_CPU_X86_VMX"], "group_policy": ["none", "isolate"],
    "root_required": ["CUSTOM_T", "!CUSTOM_T"], "same_subtree": ["_A", "_A,_B"], "project_id": ["p"],
    "consumer_type": ["INSTANCE", "all"], "name": ["startswith:CUSTOM_", "CUSTOM_T", "host"], "associated": ["true"],
    "resources_A": ["VCPU:1"], "resources_B": ["DISK_GB:1"], "required_B": ["CUSTOM_T"], "resources1": ["VCPU:1"],
    "in_tree_A": [HOST], "member_of_B": [AGGREGATE],
}  # fmt: skip
"""What gets a request further than what is made up."""

NASTY = st.one_of(
    st.text(max_size=12),
    st.sampled_from(["", "null", "-1", "1e9", "NaN", "in:", "!", ",", ":", "VCPU:", "in:,", "9" * 30]),
    st.text("ABC:,!in0_", max_size=12),
)  # fmt: skip
VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=5), st.just([]), st.just({}),
    st.just([None]), st.just({"x": None}),
)  # fmt: skip

fuzz = settings(
    max_examples=12, deadline=None, database=None, phases=(Phase.generate,), suppress_health_check=list(HealthCheck)
)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    folder: Path = tmp_path_factory.mktemp("fuzz")
    database = Database(f"sqlite:///{folder}/placement.db")
    prepare(database)
    client = Client(make_app(database))
    client("PUT", "/resource_classes/CUSTOM_A")
    client("PUT", "/traits/CUSTOM_T")
    yield client
    database.dispose()


@pytest.fixture(autouse=True)
def host(service: Client) -> None:
    """It may be gone: what an operation did before is not taken back."""
    service("POST", "/resource_providers", {"name": "host", "uuid": HOST})
    stock = {"VCPU": {"total": 50}, "DISK_GB": {"total": 50}}
    service("PUT", f"/resource_providers/{HOST}/inventories",
            {"inventories": stock, "resource_provider_generation": _generation(service)})  # fmt: skip
    service("PUT", f"/resource_providers/{HOST}/aggregates",
            {"aggregates": [AGGREGATE], "resource_provider_generation": _generation(service)})  # fmt: skip


def _generation(service: Client) -> int:
    found: int = service("GET", f"/resource_providers/{HOST}").json.get("generation", 0)
    return found


def description(version: str) -> dict[str, Any]:
    served = make_app(None)  # type: ignore[arg-type]  # it is the same whatever the database
    found: dict[str, Any] = Client(served, version).nobody()("GET", "/openapi.json").json
    return found


DOCUMENTS = {version: description(version) for version in VERSIONS}
OPERATIONS = [
    pytest.param(version, path, method, id=f"{version} {method} {path}")
    for version, document in DOCUMENTS.items()
    for path, methods in document["paths"].items()
    for method in methods
    if path.strip("/")
]


@pytest.mark.parametrize(("version", "path", "method"), OPERATIONS)
def test_nothing_breaks_and_every_refusal_says_what_is_wrong(
    service: Client, version: str, path: str, method: str
) -> None:
    operation = DOCUMENTS[version]["paths"][path][method]

    @fuzz
    @given(variables=_parameters(version, path, method, "path"), query=_queries(version, path, method),
           body=_bodies(version, path, method), current=st.booleans())  # fmt: skip
    def sent(variables: dict[str, str], query: dict[str, list[str]], body: Any, current: bool) -> None:
        where = path.format(**{name: value.encode().decode("latin-1") for name, value in variables.items()})
        if current and isinstance(body, dict) and "resource_provider_generation" in body:
            body = body | {"resource_provider_generation": _generation(service)}
        data = b"" if "requestBody" not in operation else json.dumps(body).encode()
        where += f"?{urlencode(query, doseq=True)}" if query else ""
        answer = service.at(version)(method.upper(), where, data)
        _check(answer, DOCUMENTS[version], operation, [*query, *variables, *variables.values(), *_leaves(body)])

    sent()


def _parameters(version: str, path: str, method: str, where: str) -> st.SearchStrategy[dict[str, str]]:
    rows = [row for row in DOCUMENTS[version]["paths"][path][method]["parameters"] if row.get("in") == where]
    return st.fixed_dictionaries({row["name"]: _texts(row["name"]) for row in rows})


def _texts(name: str) -> st.SearchStrategy[str]:
    likely = st.sampled_from(LIKELY.get(name, ["x"]))
    return st.one_of(likely, likely, NASTY.filter(lambda text: text and not {"/", "?"} & set(text)))


@cache
def _queries(version: str, path: str, method: str) -> st.SearchStrategy[dict[str, list[str]]]:
    operation = DOCUMENTS[version]["paths"][path][method]
    names = {row["name"] for row in operation["parameters"] if row.get("in") == "query"}
    if path == "/allocation_candidates":
        names |= LIKELY.keys()
    some = {name: st.lists(_texts(name), min_size=1, max_size=2) for name in sorted(names)}
    told = st.fixed_dictionaries({}, optional=some)
    more = st.dictionaries(NASTY.filter(bool), st.lists(NASTY, min_size=1, max_size=1), max_size=1)
    return st.one_of(told, told, told, st.builds(lambda one, two: one | two, told, more)) if names else st.just({})


@cache
def _bodies(version: str, path: str, method: str) -> st.SearchStrategy[Any]:
    """Half of them fit the schema; of the others one part is another value."""
    request = DOCUMENTS[version]["paths"][path][method].get("requestBody")
    if request is None:
        return st.none()
    schema = request["content"]["application/json"]["schema"]
    spots = st.sampled_from(list(places(schema)))
    wrong = st.builds(lambda place, value: with_value(schema, place, value), spots, VALUES)
    return st.one_of(_fitting(schema), wrong)


def _fitting(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Values of a schema, as far as Placement's bodies use schemas."""
    kinds = schema.get("type", "object")
    return st.one_of([_KINDS[kind](schema) for kind in ([kinds] if isinstance(kinds, str) else kinds)])


def _object(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    members = {name: _fitting(inner) for name, inner in schema.get("properties", {}).items()}
    needed = {name: members.pop(name) for name in schema.get("required", ())}
    named = st.fixed_dictionaries(needed, optional=members)
    for pattern, inner in schema.get("patternProperties", {}).items():
        least = schema.get("minProperties", 0)
        keys = st.one_of(_KEYS, st.from_regex(pattern.replace("$", r"\Z"))).filter(re.compile(pattern).search)
        free = st.dictionaries(keys, _fitting(inner), min_size=least, max_size=2)
        named = st.builds(lambda one, two: one | two, named, free)
    return named


def _array(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    return st.lists(
        _fitting(schema["items"]), min_size=schema.get("minItems", 0), max_size=3,
        unique_by=repr if schema.get("uniqueItems") else None,
    )  # fmt: skip


def _string(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    if schema.get("format") == "uuid":
        return st.one_of(st.just(HOST), st.uuids().map(str))
    if "pattern" in schema:
        return st.one_of(_KEYS.filter(re.compile(schema["pattern"]).search), st.from_regex(schema["pattern"]))
    return st.text(min_size=schema.get("minLength", 0), max_size=min(schema.get("maxLength", 9), 9))


def _number(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    low, high = schema.get("minimum"), schema.get("maximum")
    some = st.one_of(st.integers(1, 9), st.integers(low, None if high is None else int(high)))
    return some if schema.get("type") == "integer" else st.one_of(some, st.floats(low, high, allow_nan=False))


_KEYS = st.sampled_from([HOST, CONSUMER, "VCPU", "DISK_GB", "CUSTOM_A", "CUSTOM_T", "HW_CPU_X86_VMX", "", "_A"])
_KINDS: dict[str, Any] = {
    "object": _object, "array": _array, "string": _string, "integer": _number, "number": _number,
    "null": lambda schema: st.none(),
}  # fmt: skip


def _check(answer: Reply, document: dict[str, Any], operation: dict[str, Any], asked: list[str]) -> None:
    assert str(answer.status) in operation["responses"] or answer.status == 404, (answer.status, answer.body)
    if answer.status < 400:
        return
    jsonschema.validate(answer.json, document["components"]["schemas"]["fault"])
    assert answer.error["request_id"]
    if answer.status == 400:
        told = answer.error["detail"]
        schema = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
        known = [row["name"] for row in operation["parameters"] if row.get("in") == "query"]
        words = [*asked, *map(repr, asked), *known, *_members(schema), "trait", "Requested resource", "JSON"]
        assert any(_plain(word) in _plain(told) for word in words), (asked, told)


def _plain(text: str) -> str:
    """The text but for case and white space, which are shown in another form."""
    return "".join(text.lower().split())


def _leaves(body: Any) -> Iterator[str]:
    """The texts of a body."""
    if isinstance(body, dict):
        body = [*body, *body.values()]
    if isinstance(body, list):
        for inner in body:
            yield from _leaves(inner)
    elif isinstance(body, str) and body:
        yield body


def _members(schema: Any) -> Iterator[str]:
    """The names of all fields of a body."""
    if isinstance(schema, dict):
        yield from schema.get("properties", ())
        for inner in schema.values():
            yield from _members(inner)
