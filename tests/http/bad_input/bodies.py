"""Bodies made from the rows' own schemas: the least one that fits, and one with a given value at a given place."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

Schema = dict[str, Any]
Place = tuple[str | int, ...]

SAMPLES = {
    "uuid": "00000000-0000-4000-8000-000000000000", "ip": "127.0.0.9", "ipv4": "127.0.0.9", "ipv6": "::1",
    "base64": "YWJj", "device": "/dev/vdz", "date-time": "2026-01-01T00:00:00",
}  # fmt: skip
_TEXTS = ("x", "1", "/dev/vdz", "/1", "CUSTOM_X", "1.0", "", "ab-c", "abcdefgh", SAMPLES["uuid"])


def places(schema: Schema, at: Place = ()) -> Iterator[Place]:
    """Every place of a body that a schema speaks of, outermost first."""
    yield at
    for part in _parts(schema):
        for name, inner in part.get("properties", {}).items():
            yield from places(inner, (*at, name))
        for pattern, inner in part.get("patternProperties", {}).items():
            yield from places(inner, (*at, _matching(pattern)))
        if isinstance(part.get("items"), dict):
            yield from places(part["items"], (*at, 0))


def least(schema: Schema) -> Any:
    """A small value that fits."""
    if len(_parts(schema)) > 1:
        return least(_parts(schema)[1])
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema.get("type")
    kind = kind[0] if isinstance(kind, list) else kind
    if kind == "object":
        return _object(schema)
    if kind == "array":
        return [least(schema.get("items", {}))] * schema.get("minItems", 0)
    if kind in ("integer", "number"):
        return max(schema.get("minimum", 1), 1)
    if kind == "string":
        return _text(schema)
    return True if kind == "boolean" else None


def with_value(schema: Schema, place: Place, value: Any) -> Any:
    """The least body that has this value at this place."""
    if not place:
        return value
    name, rest = place[0], place[1:]
    for part in _parts(schema):
        if isinstance(name, int) and isinstance(part.get("items"), dict):
            return [with_value(part["items"], rest, value)]
        if name in part.get("properties", {}):
            return _object(part) | {name: with_value(part["properties"][name], rest, value)}
        for pattern, inner in part.get("patternProperties", {}).items():
            if isinstance(name, str) and re.search(pattern, name):
                needed = {known: least(part.get("properties", {}).get(known, {})) for known in part.get("required", ())}
                return needed | {name: with_value(inner, rest, value)}
    raise LookupError(place)


def _parts(schema: Schema) -> list[Schema]:
    return [schema, *schema.get("anyOf", ()), *schema.get("oneOf", ())]


def _object(schema: Schema) -> dict[str, Any]:
    members = schema.get("properties", {})
    found = {name: least(members.get(name, {})) for name in schema.get("required", ())}
    if len(found) < schema.get("minProperties", 0):
        patterns = {_matching(pattern): inner for pattern, inner in schema.get("patternProperties", {}).items()}
        name, inner = next(iter((members | patterns).items()))
        found[name] = least(inner)
    return found


def _matching(pattern: str) -> str:
    return next((text for text in _TEXTS if re.search(pattern, text)), "x")


def _text(schema: Schema) -> str:
    sample = SAMPLES.get(schema.get("format", ""))
    if sample is not None:
        return sample
    if "pattern" in schema:
        return _matching(schema["pattern"])
    return "x" * int(schema.get("minLength", 1) or 1)
