"""The wire form of messages and errors."""

from __future__ import annotations

import datetime
from typing import Any

import msgspec
import pytest

from kilonova.bus import calls, codec
from kilonova.core.errors import KINDS, Conflict, KilonovaError, NotFound


class Strange(NotFound):
    """Its __init__ wants other arguments than the kinds do."""

    code, message = "codec_strange", "?"

    def __init__(self, one: str, two: int) -> None:
        super().__init__(f"{one}{two}", one=one)


def _cross(error: Exception) -> KilonovaError:
    with pytest.raises(KilonovaError) as caught:
        codec.decode_reply(calls.console_output, codec.encode_fault(error))
    return caught.value


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_crosses_as_itself(kind: type[KilonovaError]) -> None:
    found = _cross(kind("words", n=1))
    assert (type(found), found.text, found.details) == (kind, "words", {"n": 1})


def test_an_error_with_its_own_init_is_revived_without_it() -> None:
    found = _cross(Strange("a", 7))
    assert (type(found), str(found), found.details) == (Strange, "a7", {"one": "a"})


def test_a_code_unknown_here_falls_back_to_the_kind() -> None:
    found = codec.revive(codec.Fault("conflict", "from_a_later_release", "words"))
    assert (type(found), found.text, found.status) == (Conflict, "words", 409)


def test_a_kind_unknown_here_becomes_an_internal_error() -> None:
    assert codec.revive(codec.Fault("tenth_kind", "x", "words")).status == 500


def test_details_that_are_no_plain_data_do_not_hide_the_error() -> None:
    found = _cross(Conflict("words", what=object(), when=datetime.datetime(2026, 1, 2)))
    assert type(found) is Conflict
    assert set(found.details) == {"what", "when"}


@pytest.mark.parametrize(
    "data",
    [b"{", b"[]", b'{"call": "no_such", "body": {}}', b'{"call": "wake_workflow", "body": {"database": 3}}',
     b'{"call": "wake_workflow"}'],
)  # fmt: skip
def test_what_no_row_describes_is_refused(data: bytes) -> None:
    with pytest.raises(codec.BadMessage):
        codec.decode_request(data)


def test_fields_of_a_later_release_are_passed_over() -> None:
    data = b'{"call": "wake_workflow", "body": {"database": "api", "workflow": "w", "later": 1}, "also": 2}'
    assert codec.decode_request(data)[1] == calls.Wake("api", "w")



def _sample(type_: Any) -> Any:
    """A value of a message's type with every required field filled in."""
    info = msgspec.inspect.type_info(type_)
    return _of(info)


def _of(info: Any) -> Any:
    match info:
        case msgspec.inspect.StructType():
            return info.cls(**{f.name: _of(f.type) for f in info.fields})
        case msgspec.inspect.VarTupleType():
            return (_of(info.item_type),)
        case msgspec.inspect.TupleType():
            return tuple(_of(item) for item in info.item_types)
        case msgspec.inspect.ListType():
            return [_of(info.item_type)]
        case msgspec.inspect.DictType():
            return {"k": _of(info.value_type)}
        case msgspec.inspect.LiteralType():
            return info.values[0]
        case msgspec.inspect.UnionType():
            return _of(info.types[0])
        case _:
            return _SCALARS.get(type(info), "x")


_SCALARS = {
    msgspec.inspect.IntType: 3, msgspec.inspect.FloatType: 1.5, msgspec.inspect.BoolType: True,
    msgspec.inspect.BytesType: b"x", msgspec.inspect.NoneType: None,
    msgspec.inspect.DateTimeType: datetime.datetime(2026, 1, 2, 3, 4, 5, 600),
}  # fmt: skip


@pytest.mark.parametrize("row", calls.CALLS.values(), ids=lambda row: row.name)
def test_every_row_of_the_table_crosses_equal(row: calls.Call[Any, Any]) -> None:
    request = _sample(row.request)
    assert codec.decode_request(codec.encode_request(row, request, None)) == (row, request, None)
    reply = None if row.reply is None else _sample(row.reply)
    assert codec.decode_reply(row, codec.encode_reply(row, reply)) == reply
