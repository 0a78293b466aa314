"""The schema documents by which image clients know what attributes there are; made from the rows that check them."""

from __future__ import annotations

from typing import Any

from kilonova.embedded.images.records import ATTRIBUTES, READ_ONLY
from kilonova.http.op import Op, Request

_INTEGERS = ("size", "virtual_size")
_ANSWERED = tuple(name for name in READ_ONLY if name not in ("direct_url", "locations", "stores"))


def _read_only(name: str) -> dict[str, Any]:
    return {"type": ["null", "integer" if name in _INTEGERS else "string"], "readOnly": True}


IMAGE: dict[str, Any] = {
    "name": "image",
    "properties": {
        **{name: _read_only(name) for name in _ANSWERED},
        **{name: kind.schema(None) for name, kind in ATTRIBUTES.items()},
    },
    "additionalProperties": {"type": "string"},
    "links": [{"rel": "self", "href": "{self}"}, {"rel": "enclosure", "href": "{file}"},
              {"rel": "describedby", "href": "{schema}"}],
}  # fmt: skip
MEMBER: dict[str, Any] = {
    "name": "member",
    "properties": {
        **{name: {"type": "string"} for name in ("image_id", "member_id", "created_at", "updated_at", "schema")},
        "status": {"type": "string", "enum": ["pending", "accepted", "rejected"]},
    },
}


def _plural(item: dict[str, Any]) -> dict[str, Any]:
    name = item["name"] + "s"
    links = {"first": {"type": "string"}, "next": {"type": "string"}} if name == "images" else {}
    return {
        "name": name,
        "properties": {name: {"type": "array", "items": item}, **links, "schema": {"type": "string"}},
        "links": [{"rel": rel, "href": f"{{{rel}}}"} for rel in (*links, "schema")],
    }


DOCUMENTS = {"image": IMAGE, "images": _plural(IMAGE), "member": MEMBER, "members": _plural(MEMBER)}


def _schema(req: Request) -> dict[str, Any]:
    return DOCUMENTS[req.path_info.rpartition("/")[2]]


OPS = tuple(Op("GET", f"/v2/schemas/{name}", _schema) for name in DOCUMENTS)
