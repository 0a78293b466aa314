"""Every field of every body of every service gets values of wrong types, sizes and characters, made from the rows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from kilonova.http.validate import Validator
from kilonova.http.versions import at
from tests.http.bad_input.bodies import Place, places, with_value
from tests.http.bad_input.services import UNKNOWN, Case, cases
from tests.http.compute.cloud import Client

LONE = "\ud800"  # half of a character: no JSON text may hold it
VALUES: tuple[Any, ...] = (
    None, True, -1, 10**40, 1.5, "", "x" * 70_000, "a\0b", LONE, [], {}, [None], {"x": None},
)  # fmt: skip
CASES = list(cases())
DEEP = b"[" * 50_000 + b"]" * 50_000


@pytest.fixture(scope="module", autouse=True)
def provider(admin: Client) -> Iterator[None]:
    """Placement says that there is no provider before it says what is wrong with a body: so there is one."""
    admin.ok("POST", "/resource_providers", {"name": "nonsense", "uuid": UNKNOWN}, service="/placement")
    yield
    admin.ok("DELETE", f"/resource_providers/{UNKNOWN}", service="/placement")


def schema_of(case: Case) -> dict[str, Any]:
    kind = at(case.op.body, case.number)
    return kind.schema(case.number) if kind is not None else {}


def encoded(case: Case, body: Any) -> bytes:
    return json.dumps({case.op.action: body} if case.op.action else body).encode()


def is_refused(case: Case, status: int, document: Any, place: Place, value: Any) -> bool:
    """Whether this is the 400 of the schema, in the service's format. Placement says first who may not (403)."""
    if status == 403 and case.target.name in ("placement", "scheduler"):
        return True
    assert case.target.message(document), (place, value, document)
    return status == 400


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_field_with_a_wrong_value_is_refused_and_one_that_fits_breaks_nothing(case: Case, admin: Client) -> None:
    schema = schema_of(case)
    validator = Validator(schema)
    for place in places(schema):
        for value in VALUES:
            body = with_value(schema, place, value)
            status, document = case.send(admin, encoded(case, body))
            if value != LONE and validator.fits(body):
                assert status < 500 or status == 501, (place, value, document)
            else:
                assert is_refused(case, status, document, place, value), (place, value, status, document)


def closed_places(schema: dict[str, Any], at: Place = ()) -> list[Place]:
    """Where an object is that takes no unknown keys."""
    found = [at] if schema.get("additionalProperties") is False and "patternProperties" not in schema else []
    for name, inner in schema.get("properties", {}).items():
        found += closed_places(inner, (*at, name))
    return found


@pytest.mark.parametrize("case", [case for case in CASES if closed_places(schema_of(case))], ids=str)
def test_an_unknown_key_is_refused_where_the_object_is_closed(case: Case, admin: Client) -> None:
    schema = schema_of(case)
    for place in closed_places(schema):
        status, document = case.send(admin, encoded(case, with_value(schema, place, {"x-unknown": 1})))
        assert is_refused(case, status, document, place, "x-unknown"), (place, status, document)


NO_JSON = (b"{", b"nul", b'{"a":}', b"\xff\xfe", b'{"a": NaN}', b"{} {}", DEEP)


@pytest.mark.parametrize("body", NO_JSON, ids=lambda body: repr(body[:9]))
def test_what_is_no_json_is_refused_by_every_operation(body: bytes, admin: Client) -> None:
    for case in CASES:
        status, document = case.send(admin, body)
        assert is_refused(case, status, document, (), body), (str(case), status, document)


def test_a_missing_body_is_refused_where_one_is_needed(admin: Client) -> None:
    for case in CASES:
        if case.op.action or not Validator(schema_of(case)).fits(None):
            status, document = case.send(admin, b"")
            assert is_refused(case, status, document, (), b""), (str(case), status, document)
