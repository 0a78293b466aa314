"""The OpenAPI document: it is well formed, and says of every operation what its row says."""

from __future__ import annotations

import io
import json
import re
from typing import Any

import jsonschema
import pytest

from kilonova.api.compute.app import make_app, openapi_document
from kilonova.api.compute.rows import OPS
from kilonova.api.compute.versions import VERSIONS
from kilonova.http.op import Op
from kilonova.http.openapi import document, plain
from kilonova.http.validate import Validator
from kilonova.http.versions import at, parse
from tests.http.bad_input.bodies import least, places, with_value

NEWEST = VERSIONS.maximum
DOCUMENT: dict[str, Any] = json.loads(openapi_document())
SERVED = [op for op in OPS if NEWEST in op.range]


def described(op: Op) -> dict[str, Any]:
    found: dict[str, Any] = DOCUMENT["paths"][op.path][op.method.lower()]
    return found


def references(value: Any) -> list[str]:
    if isinstance(value, dict):
        own = [value["$ref"]] if isinstance(value.get("$ref"), str) else []
        return own + [ref for inner in value.values() for ref in references(inner)]
    return [ref for inner in value for ref in references(inner)] if isinstance(value, list) else []


def test_the_frame_is_openapi_3_1() -> None:
    assert DOCUMENT["openapi"] == "3.1.0"
    assert DOCUMENT["info"] == {"title": "Kilonova Compute", "version": "2.104"}
    assert DOCUMENT["servers"] == [{"url": "v2.1"}]
    assert set(DOCUMENT) <= {"openapi", "info", "servers", "paths", "components", "security"}


def test_every_reference_leads_somewhere() -> None:
    for reference in set(references(DOCUMENT)):
        found = DOCUMENT
        for part in reference.removeprefix("#/").split("/"):
            found = found[part]


def test_every_operation_of_the_newest_version_is_there_and_no_other() -> None:
    there = {(path, method.upper()) for path, methods in DOCUMENT["paths"].items() for method in methods}
    assert there == {(op.path, op.method) for op in SERVED}


def test_operations_have_different_names() -> None:
    names = [operation["operationId"] for methods in DOCUMENT["paths"].values() for operation in methods.values()]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("op", SERVED, ids=lambda op: f"{op.method} {op.path} {op.action or ''}")
def test_an_operation_says_what_its_row_says(op: Op) -> None:
    found = described(op)
    in_path = [row["name"] for row in found["parameters"] if row.get("in") == "path"]
    in_query = {row["name"] for row in found["parameters"] if row.get("in") == "query"}
    assert in_path == re.findall(r"{(.*?)}", op.path)
    assert in_query == set(op.query.known(NEWEST) if op.query else ())
    codes = set(map(int, found["responses"]))
    assert {at(op.ok, NEWEST), *at(op.errors, NEWEST)} <= codes
    assert ({401, 406} <= codes) is op.auth
    assert ("security" in found) is (not op.auth)
    assert all(response["description"] for response in found["responses"].values())


def body_of(op: Op) -> dict[str, Any] | None:
    """The schema of a row's body in the document, for an action within its wrapper."""
    request = described(op).get("requestBody")
    if request is None:
        return None
    schema: dict[str, Any] = request["content"]["application/json"]["schema"]
    if op.action is None:
        return schema
    (found,) = [one for one in schema["oneOf"] if one["title"] == op.action]
    inner: dict[str, Any] = found["properties"][op.action]
    return inner


@pytest.mark.parametrize("op", SERVED, ids=lambda op: f"{op.method} {op.path} {op.action or ''}")
def test_a_body_in_the_document_takes_what_the_row_takes(op: Op) -> None:
    kind, schema = at(op.body, NEWEST), body_of(op)
    if kind is None:
        assert schema in (None, {})
        return
    assert schema is not None
    jsonschema.Draft202012Validator.check_schema(schema)
    told = jsonschema.Draft202012Validator(schema)
    own = kind.schema(NEWEST)
    exact = Validator(own)
    assert told.is_valid(least(own))
    for place in places(own):
        for value in VALUES:
            body = with_value(own, place, value)
            if exact.fits(body):
                assert told.is_valid(body), (place, value)
            elif "format" not in json.dumps(own):
                assert not told.is_valid(body), (place, value)


VALUES: tuple[Any, ...] = (None, True, "", [], {}, 1.5, {"x": None})


def test_formats_of_our_own_are_told_in_words() -> None:
    schema = plain({"type": "string", "format": "tag", "properties": {"format": {"format": "uuid"}}})
    assert schema["description"] == "It may hold neither ',' nor '/'."
    assert schema["properties"] == {"format": {"format": "uuid"}}
    assert "tag" not in json.dumps(schema)


def test_a_bound_that_excludes_itself_is_a_number() -> None:
    assert plain({"minimum": 0, "exclusiveMinimum": True}) == {"exclusiveMinimum": 0}


def test_actions_that_answer_differently_are_named_with_their_code() -> None:
    rows = (
        Op("POST", "/x/action", lambda req: None, action="a", ok=202, errors=(409,)),
        Op("POST", "/x/action", lambda req: None, action="b", ok=200),
        Op("POST", "/x/action", lambda req: None, action="late", since="2.104"),
    )
    found = document("t", "/", rows, VERSIONS, parse("2.103"), fault={})["paths"]["/x/action"]["post"]
    bodies = found["requestBody"]["content"]["application/json"]["schema"]["oneOf"]
    assert found["responses"]["202"]["description"] == "Accepted: a"
    assert found["responses"]["409"]["description"] == "Conflict: a"
    assert found["responses"]["404"]["description"] == "Not Found"
    assert [one["title"] for one in bodies] == ["a", "b"]


def test_it_is_served_without_a_token() -> None:
    app = make_app(None, None, auth_uri="", behind=lambda inner: inner)
    environ = {
        "REQUEST_METHOD": "GET", "SCRIPT_NAME": "/compute", "PATH_INFO": "/openapi.json", "HTTP_HOST": "127.0.0.1",
        "wsgi.url_scheme": "http", "wsgi.input": io.BytesIO(),
    }  # fmt: skip
    started: list[Any] = []
    data = b"".join(app(environ, lambda status, headers: started.extend((status, headers))))
    assert started[0] == "200 OK"
    assert dict(started[1])["Content-Type"] == "application/json"
    assert json.loads(data) == DOCUMENT
