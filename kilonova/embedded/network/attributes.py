"""What an attribute of a network resource is: one row says its kind, its default, and who may set and see it.

Kinds turn the value on the wire into the value that is stored, or raise ValueError with the reason. Knows no noun.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from kilonova.core import ids

Kind = Callable[[Any], Any]

REQUIRED: Final = object()
_MAC = re.compile(r"^([0-9a-f]{2}:){5}[0-9a-f]{2}$")


@dataclass(frozen=True, slots=True)
class Attribute:
    """One attribute. `column` is where it is stored (default: its name), "" for one that is computed.

    set: when the caller may give it. admin: only administrators and services may give another value than the default.
    hidden: only they see it.
    """

    name: str
    kind: Kind | None = None
    default: Any = None
    set: Literal["create", "update", "both", "never"] = "both"
    admin: bool = False
    hidden: bool = False
    column: str | None = None

    @property
    def stored(self) -> str:
        """The column's name; "" when there is none."""
        return self.name if self.column is None else self.column


def text(limit: int = 255) -> Kind:
    """A string of at most so many characters."""

    def read(value: Any) -> str:
        if not isinstance(value, str):
            raise ValueError(f"{value!r} is not a string")
        if len(value) > limit:
            raise ValueError(f"the string is longer than {limit} characters")
        if "\0" in value:
            raise ValueError("the string has a null character")
        return value

    return read


def integer(low: int, high: int) -> Kind:
    """A whole number in the range, digits accepted."""

    def read(value: Any) -> int:
        try:
            number = int(value) if isinstance(value, str | int) and not isinstance(value, bool) else None
        except ValueError:
            number = None
        if number is None:
            raise ValueError(f"{value!r} is not an integer")
        if not low <= number <= high:
            raise ValueError(f"{number} is not between {low} and {high}")
        return number

    return read


def boolean(value: Any) -> bool:
    """True or False, also as the words and digits that Neutron takes."""
    if isinstance(value, bool):
        return value
    known = {"true": True, "1": True, "false": False, "0": False}
    found = known.get(str(value).lower())
    if found is None:
        raise ValueError(f"{value!r} is not a boolean")
    return found


def uuid(value: Any) -> str:
    """A UUID with hyphens."""
    if not (isinstance(value, str) and ids.is_uuid_like(value)):
        raise ValueError(f"{value!r} is not a UUID")
    return ids.canonical_uuid(value)


def project(value: Any) -> str:
    """A project's id; its form is identity's business."""
    if not isinstance(value, str) or not value or len(value) > 255:
        raise ValueError(f"{value!r} is not a project id")
    return value


def address(value: Any) -> str:
    """An IPv4 or IPv6 address in canonical form."""
    if not isinstance(value, str) or "%" in value:
        raise ValueError(f"{value!r} is not an IP address")
    try:
        return str(ipaddress.ip_address(value))
    except ValueError:
        raise ValueError(f"{value!r} is not an IP address") from None


def cidr(value: Any) -> str:
    """A range in canonical form; host bits are cut off."""
    if not isinstance(value, str) or "%" in value:
        raise ValueError(f"{value!r} is not a CIDR")
    try:
        return str(ipaddress.ip_network(value, strict=False))
    except ValueError:
        raise ValueError(f"{value!r} is not a CIDR") from None


def mac(value: Any) -> str:
    """A unicast MAC address in lower case with colons."""
    found = value.lower().replace("-", ":") if isinstance(value, str) else ""
    if not _MAC.match(found) or int(found[:2], 16) & 1 or found == "00:00:00:00:00:00":
        raise ValueError(f"{value!r} is not a MAC address")
    return found


def one_of(*choices: Any) -> Kind:
    """One of the values."""

    def read(value: Any) -> Any:
        if value not in choices or isinstance(value, bool):
            raise ValueError(f"{value!r} is not one of {', '.join(str(choice) for choice in choices)}")
        return value

    return read


def maybe(kind: Kind) -> Kind:
    """The kind, or null."""
    return lambda value: None if value is None else kind(value)


def many(kind: Kind, limit: int = 100, *, merge: bool = False) -> Kind:
    """A list; null and the empty string are the empty one. Duplicates are refused, or merged."""

    def read(value: Any) -> list[Any]:
        if value in (None, ""):
            return []
        if not isinstance(value, list):
            raise ValueError(f"{value!r} is not a list")
        if len(value) > limit:
            raise ValueError(f"there are more than {limit} entries")
        found = [kind(entry) for entry in value]
        if merge:
            return list(dict.fromkeys(found))
        if any(entry in found[:place] for place, entry in enumerate(found)):
            raise ValueError("there are duplicate entries")
        return found

    return read


def record(fields: Mapping[str, Kind], required: tuple[str, ...] = ()) -> Kind:
    """A map with these keys and no other."""

    def read(value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise ValueError(f"{value!r} is not a map")
        unknown, missing = [key for key in value if key not in fields], [key for key in required if key not in value]
        if unknown or missing:
            raise ValueError(f"unknown or missing keys: {', '.join(map(str, unknown + missing))}")
        return {key: fields[key](entry) for key, entry in value.items()}

    return read


def free_map(value: Any) -> dict[str, Any]:
    """Any map with string keys; null is the empty one."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ValueError(f"{value!r} is not a map")
    return value
