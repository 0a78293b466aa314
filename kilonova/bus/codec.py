"""How a message looks on the wire: JSON by msgspec, with the request context beside it; and how errors cross.

Both transports use this. An error travels as (kind, code, text, details) and is raised again as the class that declares
the code, or as its kind where the receiving process does not know the code (a release apart, or another room).
"""

from __future__ import annotations

from typing import Any

import msgspec

from kilonova.bus.calls import CALLS, Call
from kilonova.core.context import Context
from kilonova.core.errors import KINDS, Invalid, KilonovaError, kind_of


class Message(msgspec.Struct, frozen=True, omit_defaults=True):
    """One request: the row's name, `Context.to_message`, the request struct as raw JSON."""

    call: str
    body: msgspec.Raw
    context: dict[str, Any] | None = None


class Fault(msgspec.Struct, frozen=True, omit_defaults=True):
    """An error as it crosses."""

    kind: str
    code: str
    text: str
    details: dict[str, Any] = {}


class Reply(msgspec.Struct, frozen=True, omit_defaults=True):
    """One answer: a body, or a fault."""

    body: msgspec.Raw = msgspec.Raw(b"null")
    fault: Fault | None = None


class BadMessage(Invalid):
    """A message that no row describes."""

    code, message = "bad_message", "The message {call} cannot be read: {reason}."


_ENCODER = msgspec.json.Encoder()
_MESSAGE = msgspec.json.Decoder(Message)
_REPLY = msgspec.json.Decoder(Reply)


_decoders: dict[object, msgspec.json.Decoder[Any]] = {}  # one a struct type of the table of calls


def _decoder(type_: Any) -> msgspec.json.Decoder[Any]:
    found = _decoders.get(type_)
    if found is None:
        found = _decoders[type_] = msgspec.json.Decoder(type_)
    return found


def encode_request(row: Call[Any, Any], request: msgspec.Struct, ctx: Context | None) -> bytes:
    """A request as bytes. TypeError when it is not the row's request type."""
    if type(request) is not row.request:
        raise TypeError(f"{row.name} takes {row.request.__name__}, not {type(request).__name__}")
    context = None if ctx is None else ctx.to_message()
    return _ENCODER.encode(Message(row.name, msgspec.Raw(_ENCODER.encode(request)), context))


def decode_request(data: bytes) -> tuple[Call[Any, Any], Any, dict[str, Any] | None]:
    """(row, request, context as a message). BadMessage for an unknown row or a body that does not fit."""
    try:
        message = _MESSAGE.decode(data)
    except msgspec.MsgspecError as error:
        raise BadMessage(call="?", reason=str(error)) from error
    row = CALLS.get(message.call)
    if row is None:
        raise BadMessage(call=message.call, reason="no such row")
    try:
        return row, _decoder(row.request).decode(message.body), message.context
    except msgspec.MsgspecError as error:
        raise BadMessage(call=message.call, reason=str(error)) from error


def encode_reply(row: Call[Any, Any], value: Any) -> bytes:
    """An answer as bytes. TypeError when it is not the row's reply type."""
    if not isinstance(value, row.reply or type(None)):
        raise TypeError(f"{row.name} answers {row.reply.__name__ if row.reply else None}, not {type(value).__name__}")
    return _ENCODER.encode(Reply(msgspec.Raw(_ENCODER.encode(value))))


def encode_fault(error: Exception) -> bytes:
    """An error as bytes. What is no domain error crosses as "internal", without its words: they are in the log."""
    return _ENCODER.encode(Reply(fault=_fault(error)))


def decode_reply(row: Call[Any, Any], data: bytes) -> Any:
    """The answer; raises the error that crossed."""
    reply = _REPLY.decode(data)
    if reply.fault is not None:
        raise revive(reply.fault)
    return None if row.reply is None else _decoder(row.reply).decode(reply.body)


def revive(fault: Fault) -> KilonovaError:
    """The error of the class that declares its code within its kind; else of its kind."""
    kind = next((kind for kind in KINDS if kind.code == fault.kind), KilonovaError)
    found = _declaring(kind, fault.code) or kind
    error = found.__new__(found)  # not through its __init__, which may want other arguments
    KilonovaError.__init__(error, fault.text, **fault.details)
    return error


def _fault(error: Exception) -> Fault:
    if not isinstance(error, KilonovaError):
        return Fault(KilonovaError.code, KilonovaError.code, f"{KilonovaError.message} ({type(error).__name__})")
    try:
        details = msgspec.to_builtins(error.details, str_keys=True)
    except (TypeError, ValueError):  # a detail that is no plain data must not hide the error itself
        details = {key: str(value) for key, value in error.details.items()}
    return Fault(kind_of(error).code, error.code, error.text, details)


def _declaring(kind: type[KilonovaError], code: str) -> type[KilonovaError] | None:
    if kind.code == code:
        return kind
    for child in kind.__subclasses__():
        if child in KINDS:
            continue
        if found := _declaring(child, code):
            return found
    return None
