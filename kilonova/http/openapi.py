"""An OpenAPI 3.1 document made of a service's rows, as they are at one microversion.

It says what the rows say: paths, parameters, bodies, success and error codes, policies and ranges. It knows no resource
and no request. Representations are not in it: a row does not name its view.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from kilonova.http import formats
from kilonova.http.app import IMPLICIT
from kilonova.http.dialect import REASONS
from kilonova.http.fields import Param, Schema
from kilonova.http.op import Op
from kilonova.http.versions import ALWAYS, Version, Versions, at, show

Document = dict[str, Any]

_KNOWN_FORMATS: Final = frozenset(("uuid", "ipv4", "ipv6", "date-time", "regex"))
"""Formats that JSON Schema has too; our others are told in words."""


def document(
    title: str, server: str, ops: Iterable[Op], versions: Versions, version: Version, *, fault: Schema,
    in_path: Mapping[str, Schema] | None = None,
) -> Document:  # fmt: skip
    """The document. server: the address of the service, absolute or relative to where the document is. fault: the body
    of the service's errors. in_path: schemas of variables in paths, which are strings otherwise."""
    grouped: dict[tuple[str, str], list[Op]] = {}
    for op in ops:
        if version in op.range:
            grouped.setdefault((op.path, op.method), []).append(op)
    paths: dict[str, Document] = {}
    for (path, method), rows in sorted(grouped.items(), key=lambda entry: entry[0]):
        paths.setdefault(path, {})[method.lower()] = _operation(rows, version, in_path or {})
    return {
        "openapi": "3.1.0",
        "info": {"title": title, "version": show(version)},
        "servers": [{"url": server}],
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "apiKey", "in": "header", "name": "X-Auth-Token"}},
            "parameters": {"version": _version_header(versions, version)},
            "schemas": {"fault": plain(fault)},
        },
        "security": [{"token": []}],
    }


def _version_header(versions: Versions, version: Version) -> Document:
    return {
        "name": "OpenStack-API-Version",
        "in": "header",
        "description": f"From {show(versions.minimum)} to {show(versions.maximum)}, or latest.",
        "schema": {"type": "string", "default": f"{versions.service} {show(version)}"},
    }


def _operation(rows: list[Op], version: Version, in_path: Mapping[str, Schema]) -> Document:
    """One method of a path: one row, or all actions that share it."""
    first = rows[0]
    parameters = [*_path_parameters(first, in_path), *_query_parameters(first, version)]
    found: Document = {
        "operationId": _identifier(first),
        "parameters": [*parameters, {"$ref": "#/components/parameters/version"}],
        "responses": _responses(rows, version),
    }
    words = _words(first.handler.__doc__) if first.action is None else "One of: " + ", ".join(map(_action, rows)) + "."
    if words:
        found["summary"] = words
    more = at(first.query.words, version) if first.query else ""
    if more:
        found["description"] = more
    body = _body(rows, version)
    if body is not None:
        found["requestBody"] = {"required": True, "content": {"application/json": {"schema": body}}}
    if not first.auth:
        found["security"] = []
    rules = {_action(op) or "": op.policy for op in rows if op.policy}
    if rules:
        found["x-policy"] = rules.get("") or rules
    if first.action is None and first.range is not ALWAYS:
        found["x-versions"] = str(first.range)
    return found


def _identifier(op: Op) -> str:
    return re.sub(r"[^a-zA-Z0-9]+", "_", f"{op.method.lower()}{op.path}").strip("_")


def _action(op: Op) -> str:
    return op.action or ""


def _words(docstring: str | None) -> str:
    return (docstring or "").partition("\n")[0].strip()


def _path_parameters(op: Op, schemas: Mapping[str, Schema]) -> list[Document]:
    return [
        {"name": name, "in": "path", "required": True, "schema": plain(schemas.get(name, {"type": "string"}))}
        for name in re.findall(r"{([^}]*)}", op.path)
    ]


def _query_parameters(op: Op, version: Version) -> list[Document]:
    if op.query is None:
        return []
    return [_query_parameter(name, row, version) for name, row in op.query.known(version).items()]


def _query_parameter(name: str, row: Param, version: Version) -> Document:
    told = {"name": name, "in": "query"} | ({"description": row.words} if row.words else {})
    schema = plain(row.type.schema(version))
    if row.many:
        return {**told, "explode": True, "schema": {"type": "array", "items": schema}}
    return {**told, "schema": schema}


def _body(rows: list[Op], version: Version) -> Schema | None:
    if rows[0].action is None:
        kind = at(rows[0].body, version)
        return None if kind is None else plain(kind.schema(version))
    return {"oneOf": [_action_body(op, version) for op in rows]}


def _action_body(op: Op, version: Version) -> Schema:
    kind = at(op.body, version)
    return {
        "title": op.action,
        "type": "object",
        "required": [op.action],
        "properties": {_action(op): {} if kind is None else plain(kind.schema(version))},
        "additionalProperties": False,
    }


def _responses(rows: list[Op], version: Version) -> Document:
    """By status, success first; where actions differ, the description says which ones answer so."""
    good: dict[int, list[str]] = {}
    bad: dict[int, list[str]] = {}
    for op in rows:
        good.setdefault(at(op.ok, version), []).append(_action(op))
        errors = {*at(op.errors, version), *op.faults.values(), *(IMPLICIT if op.auth else ())}
        for status in sorted(errors - {at(op.ok, version)}):
            bad.setdefault(status, []).append(_action(op))
    found: Document = {str(status): {"description": _told(status, who, rows)} for status, who in sorted(good.items())}
    for status, who in sorted(bad.items()):
        if status < 400:
            found.setdefault(str(status), {"description": _told(status, who, rows)})
            continue
        content = {"application/json": {"schema": {"$ref": "#/components/schemas/fault"}}}
        found.setdefault(str(status), {"description": _told(status, who, rows), "content": content})
    return found


def _told(status: int, who: list[str], rows: list[Op]) -> str:
    reason = REASONS.get(status, "Error")
    return reason if len(who) == len(rows) else f"{reason}: {', '.join(who)}"


def plain(schema: Any) -> Any:
    """A schema of draft 4 as one of 2020-12, which OpenAPI 3.1 has: our own formats in words, bounds as numbers."""
    if isinstance(schema, list):
        return [plain(entry) for entry in schema]
    if not isinstance(schema, dict):
        return schema
    found = {
        key: {name: plain(inner) for name, inner in value.items()}
        if key in ("properties", "patternProperties") else value if key in ("enum", "required") else plain(value)
        for key, value in schema.items()
    }  # fmt: skip
    word = schema.get("format")
    if isinstance(word, str) and word not in _KNOWN_FORMATS:
        del found["format"]
        found["description"] = formats.words(word)
    if found.get("exclusiveMinimum") is True:
        found["exclusiveMinimum"] = found.pop("minimum")
    return found
