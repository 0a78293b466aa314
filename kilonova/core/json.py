"""JSON as the whole program reads and writes it (orjson)."""

from __future__ import annotations

from typing import Any

import orjson


def dumps(value: Any) -> bytes:
    """UTF-8 bytes; keys must be strings."""
    return orjson.dumps(value)


def dump_str(value: Any) -> str:
    """The same as text, for text columns and logs."""
    return orjson.dumps(value).decode()


def loads(data: bytes | str) -> Any:
    """The value; ValueError (orjson.JSONDecodeError) for anything that is not strict JSON."""
    return orjson.loads(data)
