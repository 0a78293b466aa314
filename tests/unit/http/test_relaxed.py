"""Legacy /v2: 2.1 without microversions, tolerant of unknown keys and of spaces around names (errors.md 5)."""

from __future__ import annotations

from typing import Any

import pytest

from kilonova.http.fields import AZ_NAME, BASE64, METADATA, NAME, Arr, Field, Int, Obj, Query, wrap
from kilonova.http.op import Op
from kilonova.http.validate import Body, BodyInvalid
from tests.unit.http.ask import app, ask

THING = wrap("thing", Obj(
    Field("name", NAME, required=True), Field("zone", AZ_NAME), Field("metadata", METADATA), Field("size", Int(0)),
    Field("parts", Arr(Obj(Field("name", NAME)))), Field("late", NAME, since="2.2"), Field("data", BASE64),
))  # fmt: skip


def read(**values: Any) -> Any:
    return Body(THING, (2, 1), relaxed=True).read({"thing": {"name": "a"} | values, "other": 1})["thing"]


def test_unknown_keys_are_dropped_at_every_depth() -> None:
    assert read(unknown=1, late="x", parts=[{"name": "p", "unknown": 1}]) == {"name": "a", "parts": [{"name": "p"}]}


def test_names_lose_the_spaces_around_them() -> None:
    found = read(name="  a  ", zone=" z ", parts=[{"name": " p "}])
    assert found == {"name": "a", "zone": "z", "parts": [{"name": "p"}]}


@pytest.mark.parametrize("values", [
    {"name": "   "}, {"name": None}, {"size": -1}, {"metadata": {"ä": "x"}}, {"metadata": {"a": 1}}, {"parts": {}},
])  # fmt: skip
def test_what_is_wrong_stays_wrong(values: dict[str, Any]) -> None:
    with pytest.raises(BodyInvalid):
        read(**values)


def test_user_data_may_be_null() -> None:
    assert read(data=None) == {"name": "a"}
    with pytest.raises(BodyInvalid):
        Body(THING, (2, 1)).read({"thing": {"name": "a", "data": None}})


def test_key_patterns_still_hold() -> None:
    assert read(metadata={"a": "x"})["metadata"] == {"a": "x"}


def test_the_strict_api_refuses_the_same() -> None:
    with pytest.raises(BodyInvalid):
        Body(THING, (2, 1)).read({"thing": {"name": "a", "unknown": 1}})
    with pytest.raises(BodyInvalid):
        Body(THING, (2, 1)).read({"thing": {"name": " a "}})


ROWS = (
    Op("GET", "/x", lambda req: {"version": list(req.version or ())}, query=Query(strict=False)),
    Op("GET", "/late", lambda req: {}, since="2.2"),
)


@pytest.mark.parametrize("headers", [
    {}, {"OPENSTACK_API_VERSION": "compute 2.10"}, {"OPENSTACK_API_VERSION": "compute nonsense"},
    {"X_OPENSTACK_NOVA_API_VERSION": "99.99"},
])  # fmt: skip
def test_version_headers_are_neither_read_nor_answered(headers: dict[str, Any]) -> None:
    answer = ask(app(*ROWS, relaxed=True), "GET", "/x", **headers)
    assert (answer.status, answer.body) == (200, {"version": [2, 1]})
    for name in ("OpenStack-API-Version", "X-OpenStack-Nova-API-Version", "Vary"):
        assert answer.header(name) == []


def test_what_came_later_is_not_there() -> None:
    assert ask(app(*ROWS, relaxed=True), "GET", "/late", OPENSTACK_API_VERSION="compute 2.10").status == 404
