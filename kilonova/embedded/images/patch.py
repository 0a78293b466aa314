"""Changes to a record as a JSON patch, in the two media types that there are (RFC 6902, and the draft before it)."""

from __future__ import annotations

import re
from typing import Any

from kilonova.core.errors import Conflict, Forbidden, Invalid, KilonovaError
from kilonova.embedded.images.records import ATTRIBUTES, READ_ONLY, ReadOnly, check_property
from kilonova.embedded.store import Row
from kilonova.http.validate import Body

V20, V21 = "application/openstack-images-v2.0-json-patch", "application/openstack-images-v2.1-json-patch"
_OPERATIONS = ("add", "replace", "remove")
_CHECKS = {name: Body(kind, None) for name, kind in ATTRIBUTES.items()}


class BadPatch(Invalid):
    code, message = "bad_patch", "The patch is not valid: {why}."


class PatchType(KilonovaError):
    status, code = 415, "patch_type"
    message = f"A change of an image must be sent as {V21} or {V20}."


class NoSuchProperty(Conflict):
    code, message = "no_such_property", "Property {name} does not exist."


class NotRemovable(Forbidden):
    code, message = "not_removable", "Property {name} may not be removed."


class FormatFixed(Forbidden):
    code, message = "format_fixed", "Attribute '{name}' can only be changed while the image is queued."


def apply(row: Row, media_type: str, patch: Any) -> Row:
    """The columns that the patch changes, with their new values.

    Raises PatchType, BadPatch, ReadOnly, NoSuchProperty (a property that is not there), and the refusals of the
    attributes' own rules. Nothing is changed unless everything can be.
    """
    changes: Row = {"properties": dict(row["properties"])}
    for operation, name, value in _entries(media_type, patch):
        if name in READ_ONLY:
            raise ReadOnly(name=name)
        if name in ATTRIBUTES:
            _set_attribute(changes, row, operation, name, value)
        else:
            _set_property(changes["properties"], operation, name, value)
    return changes


def _entries(media_type: str, patch: Any) -> list[tuple[str, str, Any]]:
    if media_type not in (V20, V21):
        raise PatchType
    if not isinstance(patch, list):
        raise BadPatch(why="it must be a list of operations")
    return [_entry(media_type, entry) for entry in patch]


def _entry(media_type: str, entry: Any) -> tuple[str, str, Any]:
    if not isinstance(entry, dict):
        raise BadPatch(why="an operation must be an object")
    if media_type == V21:
        operation, path = entry.get("op"), entry.get("path")
    else:
        found = [word for word in _OPERATIONS if word in entry]
        if len(found) != 1:
            raise BadPatch(why="an operation must have exactly one of add, replace and remove")
        operation, path = found[0], entry[found[0]]
    if operation not in _OPERATIONS:
        raise BadPatch(why=f"{operation!r} is not one of add, replace and remove")
    if operation != "remove" and "value" not in entry:
        raise BadPatch(why=f"{operation} needs a value")
    return operation, _name(path), entry.get("value")


def _name(path: Any) -> str:
    if not isinstance(path, str) or not re.fullmatch(r"/(?:[^/~]|~[01])+", path, re.DOTALL):
        raise BadPatch(why=f"{path!r} does not point to an attribute of the image")
    return path[1:].replace("~1", "/").replace("~0", "~")


def _set_attribute(changes: Row, row: Row, operation: str, name: str, value: Any) -> None:
    if operation == "remove":
        raise NotRemovable(name=name)
    if name in ("disk_format", "container_format") and row["status"] != "queued" and value != row[name]:
        raise FormatFixed(name=name)
    value = _CHECKS[name].read(value)
    changes[name] = list(dict.fromkeys(value)) if name == "tags" else value


def _set_property(properties: dict[str, str], operation: str, name: str, value: Any) -> None:
    if operation != "add" and name not in properties:
        raise NoSuchProperty(name=name)
    if operation == "remove":
        del properties[name]
    else:
        check_property(name, value)
        properties[name] = value
