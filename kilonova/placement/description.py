"""The API in OpenAPI 3.1 at `/openapi.json`, made of the rows: at the version asked for, else at the newest."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from kilonova.core import json
from kilonova.http import openapi
from kilonova.http.op import Answer, Op, Request
from kilonova.http.versions import Version
from kilonova.placement.api.answers import UUID_PATTERN
from kilonova.placement.dialect import FAULT
from kilonova.placement.versions import VERSIONS

_UUID = {"type": "string", "format": "uuid", "pattern": UUID_PATTERN}
_CLASS = {"type": "string", "pattern": "^[A-Z0-9_]{1,255}$"}
_IN_PATH = {"uuid": _UUID, "consumer": _UUID, "resource_class": _CLASS, "name": _CLASS}
"""Variables of paths. Of others there is nothing: 404."""


def description(ops: Iterable[Op]) -> Op:
    """The operation that answers the document of some rows, open to everybody."""
    rows = tuple(ops)

    @cache
    def at(version: Version) -> bytes:
        found = openapi.document("Kilonova Placement", ".", rows, VERSIONS, version, fault=FAULT.schema(version),
                                 in_path=_IN_PATH)  # fmt: skip
        return json.dumps(found)

    def describe(req: Request) -> Answer:
        asked = req.header("OpenStack-API-Version") is not None and req.version is not None
        return Answer(at(req.version if asked and req.version else VERSIONS.maximum))

    return Op("GET", "/openapi.json", describe, auth=False, summary="Description")
