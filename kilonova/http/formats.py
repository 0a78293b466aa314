"""Named formats of strings. They are callables, not patterns: the two validators' regular expressions differ."""

from __future__ import annotations

import base64
import binascii
import ipaddress
import re
import unicodedata
from collections.abc import Callable
from datetime import datetime

from kilonova.core import ids
from kilonova.core.regex import is_regex

_FQDN = re.compile(r"\A[a-zA-Z0-9-._]+\Z")
_HOSTNAME = re.compile(r"\A[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?\Z")
_DEVICE = re.compile(r"\A/dev/x{0,1}[a-z]{0,1}d{0,1}[a-zA-Z]+[0-9]*\Z")
_INTEGER = re.compile(r"\A-?[0-9]+\Z", re.ASCII)


def _printable_char(char: str) -> bool:
    category = unicodedata.category(char)
    return category[0] not in "CZ" or char == " " or category == "Zs"


def printable(text: str) -> bool:
    """Only printable characters and spaces."""
    return text.isprintable() or all(_printable_char(char) for char in text)


def name(text: str) -> bool:
    """Printable, not blank, no white space at either end."""
    return bool(text) and text == text.strip() and printable(text)


def az_name(text: str) -> bool:
    """A name without a colon."""
    return name(text) and ":" not in text


def tag(text: str) -> bool:
    """No comma and no slash."""
    return "," not in text and "/" not in text


def ip_of(version: int | None) -> Callable[[str], bool]:
    """A literal address of IP version 4 or 6, or of either."""

    def check(text: str) -> bool:
        try:
            address = ipaddress.ip_address(text)
        except ValueError:
            return False
        return version is None or address.version == version

    return check


def is_base64(text: str) -> bool:
    """Whether the text decodes as base64, line breaks allowed."""
    try:
        base64.b64decode("".join(text.split()), validate=True)
    except (ValueError, binascii.Error):
        return False
    return True


def date_time(text: str) -> bool:
    """ISO 8601."""
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def integer(low: int | None, high: int | None) -> Callable[[str], bool]:
    """Digits that make a number between the two."""

    def check(text: str) -> bool:
        if not _INTEGER.match(text) or len(text) > 40:
            return False
        number = int(text)
        return (low is None or number >= low) and (high is None or number <= high)

    return check


FORMATS: dict[str, Callable[[str], bool]] = {
    "name": name,
    "az_name": az_name,
    "printable": printable,
    "fqdn": lambda text: bool(_FQDN.match(text)),
    "hostname": lambda text: bool(_HOSTNAME.match(text)),
    "uuid": ids.is_uuid_like,
    "ip": ip_of(None),
    "ipv4": ip_of(4),
    "ipv6": ip_of(6),
    "base64": is_base64,
    "tag": tag,
    "device": lambda text: bool(_DEVICE.match(text)),
    "date-time": date_time,
    "regex": is_regex,
}


_WORDS = {
    "name": "It must not be blank, begin or end with white space, or hold characters that cannot be printed.",
    "az_name": "It must not be blank, begin or end with white space, or hold ':' or characters that cannot be printed.",
    "printable": "It may hold only characters that can be printed.",
    "fqdn": "It may hold only letters, digits, '-', '.' and '_'.",
    "hostname": "It may hold only letters, digits and '-', and must begin and end with a letter or digit.",
    "uuid": "It is not a UUID.",
    "ip": "It is not an IPv4 or IPv6 address.",
    "ipv4": "It is not an IPv4 address.",
    "ipv6": "It is not an IPv6 address.",
    "base64": "It is not base64.",
    "tag": "It may hold neither ',' nor '/'.",
    "device": "It is not a device path like /dev/vdb.",
    "date-time": "It is not a time in ISO 8601 form.",
    "regex": "It is not a regular expression.",
}


def words(word: str) -> str:
    """What a person is told when a string is not of this format."""
    if word.startswith("integer:"):
        low, _, high = word[8:].partition("|")
        bounds = " and ".join([f"at least {low}"] * bool(low) + [f"at most {high}"] * bool(high))
        return "It is not an integer" + (f" of {bounds}." if bounds else ".")
    return _WORDS[word]


def register(word: str, check: Callable[[str], bool], said: str) -> None:
    """Add a format of a resource's own, before its rows are compiled. said: what a person is told (see `words`)."""
    FORMATS[word], _WORDS[word] = check, said


def checker(word: str) -> Callable[[str], bool]:
    """The check behind a format's name; `integer:low|high` is made on the spot."""
    if word.startswith("integer:"):
        low, _, high = word[8:].partition("|")
        return integer(int(low) if low else None, int(high) if high else None)
    return FORMATS[word]
