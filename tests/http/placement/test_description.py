"""The description of the API is complete at every version, and served to everybody."""

from __future__ import annotations

import re
from typing import Any

import jsonschema
import pytest

from kilonova.http.versions import at, show
from kilonova.placement.app import OPS
from kilonova.placement.dialect import FAULT
from kilonova.placement.versions import LINES, VERSIONS
from tests.http.placement.conftest import Client
from tests.unit.http.test_openapi import references

MILESTONES = ("1.0", "1.10", "1.20", "1.28", "1.38", "1.39")


def described(client: Client, version: str | None) -> dict[str, Any]:
    answer = client.at(version).nobody()("GET", "/openapi.json")
    assert answer.status == 200, answer.body
    found: dict[str, Any] = answer.json
    return found


def parameters(document: dict[str, Any], path: str, where: str) -> dict[str, dict[str, Any]]:
    rows = document["paths"][path]["get"]["parameters"]
    return {row["name"]: row for row in rows if row.get("in") == where}


def test_it_is_the_newest_version_unless_another_is_asked_for(client: Client) -> None:
    assert described(client, None)["info"] == {"title": "Kilonova Placement", "version": show(VERSIONS.maximum)}
    assert described(client, "1.12")["info"]["version"] == "1.12"
    assert client.at("1.99").nobody()("GET", "/openapi.json").status == 406


@pytest.mark.parametrize("version", LINES)
def test_every_operation_of_a_version_is_described_with_its_bodys_and_querys_fields(
    client: Client, version: str
) -> None:
    document, number = described(client, version), tuple(map(int, version.split(".")))
    served = {(op.path, op.method.lower()): op for op in reversed(OPS) if number in op.range}
    assert {(path, method) for path, methods in document["paths"].items() for method in methods} == served.keys()
    for (path, method), op in served.items():
        found = document["paths"][path][method]
        assert {row["name"] for row in found["parameters"] if row.get("in") == "query"} == set(
            op.query.known(number) if op.query else ()  # type: ignore[arg-type]
        )
        assert all(row["description"] for row in found["parameters"] if row.get("in") == "query")
        kind = at(op.body, number)  # type: ignore[arg-type]
        assert ("requestBody" in found) is (kind is not None)
        if kind is not None:
            schema = found["requestBody"]["content"]["application/json"]["schema"]
            jsonschema.Draft202012Validator.check_schema(schema)
            assert schema.get("properties", {}).keys() == kind.schema(number).get("properties", {}).keys()  # type: ignore[arg-type]
    for reference in set(references(document)):
        found = document
        for part in reference.removeprefix("#/").split("/"):
            found = found[part]


def test_bodies_change_with_the_versions(client: Client) -> None:
    def members(version: str, path: str, method: str) -> set[str]:
        body = described(client, version)["paths"][path][method]["requestBody"]
        return set(body["content"]["application/json"]["schema"].get("properties", ()))

    owners = {"allocations", "project_id", "user_id"}
    assert members("1.7", "/allocations/{consumer}", "put") == {"allocations"}
    assert members("1.27", "/allocations/{consumer}", "put") == owners
    assert members("1.33", "/allocations/{consumer}", "put") == owners | {"consumer_generation"}
    assert members("1.39", "/allocations/{consumer}", "put") == owners | {
        "consumer_generation", "mappings", "consumer_type"
    }  # fmt: skip
    assert members("1.18", "/resource_providers/{uuid}/aggregates", "put") == set()
    assert "aggregates" in members("1.19", "/resource_providers/{uuid}/aggregates", "put")


@pytest.mark.parametrize(
    ("version", "said"),
    [
        ("1.24", None), ("1.25", "number from 1 on"), ("1.30", "required and member_of may"),
        ("1.31", "member_of and in_tree may"), ("1.33", "1 to 64 letters"), ("1.36", "without resources"),
    ],
)  # fmt: skip
def test_groups_with_suffixes_are_told_in_words(client: Client, version: str, said: str | None) -> None:
    found = described(client, version)["paths"]["/allocation_candidates"]["get"].get("description")
    assert found is None if said is None else said in found


def test_variables_of_paths_say_what_they_look_like(client: Client) -> None:
    document = described(client, None)
    for path in document["paths"]:
        rows = parameters(document, path, "path") if "get" in document["paths"][path] else {}
        for name, row in rows.items():
            assert row["schema"].get("pattern"), (path, name)
            assert (row["schema"].get("format") == "uuid") is (name in ("uuid", "consumer"))
    assert re.search(parameters(document, "/traits/{name}", "path")["name"]["schema"]["pattern"], "HW_CPU_X86_VMX")


@pytest.mark.parametrize("version", MILESTONES)
def test_every_kind_of_error_looks_as_described(client: Client, version: str) -> None:
    errors = described(client, version)["components"]["schemas"]["fault"]
    client.at("1.20").provider("taken")
    asked = client.at(version)
    found = [
        asked("GET", "/no/such/path"),
        asked("PUT", "/"),
        asked("GET", "/resource_providers/00000000-0000-4000-8000-000000000000"),
        asked("GET", "/resource_providers?cow=1"),
        asked("POST", "/resource_providers", {"name": "taken"}),
        asked("POST", "/resource_providers", b"{"),
        asked("POST", "/resource_providers", b"{}", CONTENT_TYPE="text/plain"),
        asked.by(roles=["reader"], project_id="p", user_id="u")("GET", "/resource_providers"),
    ]
    assert [one.status for one in found] == [404, 405, 404, 400, 409, 400, 415, 403]
    for one in found:
        jsonschema.validate(one.json, errors)
    assert FAULT.schema(None)["properties"]["errors"]["items"]["properties"].keys() >= {"code", "request_id"}
