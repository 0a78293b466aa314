"""Identifiers and randomness, from one source that a simulation can seed."""

from __future__ import annotations

import random
import re
import secrets
import string
import uuid
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

_source: random.Random = random.SystemRandom()
_fast = True  # system randomness comes straight from os.urandom through uuid4; a seeded source does not

_REQUEST_ID = re.compile(r"^req-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$")
_ALPHABET = string.ascii_lowercase + string.digits


def seed(value: int | None) -> None:
    """Draw everything from a generator seeded with `value`; None goes back to the system's randomness."""
    global _source, _fast
    _fast = value is None
    _source = random.SystemRandom() if value is None else random.Random(value)


def new_uuid() -> str:
    """A random UUID, lower-case with hyphens."""
    return str(uuid.uuid4() if _fast else uuid.UUID(int=_source.getrandbits(128), version=4))


def new_hex() -> str:
    """A random UUID as 32 hex digits, the form of identity's ids."""
    return new_uuid().replace("-", "")


def new_request_id() -> str:
    """`req-<uuid>`."""
    return f"req-{new_uuid()}"


def derived_uuid(namespace: str, name: str) -> str:
    """The same UUID for the same two strings, always (UUID version 5)."""
    return str(uuid.uuid5(uuid.UUID(namespace), name))


def new_reservation_id() -> str:
    """`r-` and eight lower-case letters or digits (server-view 1.1)."""
    return "r-" + "".join(_source.choices(_ALPHABET, k=8))


def new_password(length: int = 12) -> str:
    """A password of letters and digits; always from the system's secure source."""
    return "".join(secrets.choice(string.ascii_letters + string.digits) for _ in range(length))


def secret_bytes(count: int) -> bytes:
    """Bytes for keys and salts; always from the system's secure source."""
    return secrets.token_bytes(count)


def is_request_id(text: str) -> bool:
    """Whether `text` is a well-formed request id."""
    return bool(_REQUEST_ID.match(text))


def is_uuid_like(text: object) -> bool:
    """Whether `text` can be read as a UUID: hyphens optional, braces and urn prefix tolerated, any case. Other scripts'
    digits are none."""
    try:
        uuid.UUID(text if str(text).isascii() else None)  # type: ignore[arg-type]
    except (ValueError, AttributeError, TypeError):
        return False
    return True


def canonical_uuid(text: str) -> str:
    """The usual form of a UUID-like string; ValueError when it is none."""
    return str(uuid.UUID(text))


def choice(items: Sequence[T]) -> T:
    """One of the items."""
    return _source.choice(items)


def shuffled(items: Sequence[T]) -> list[T]:
    """The items in random order."""
    copy = list(items)
    _source.shuffle(copy)
    return copy


def uniform(low: float, high: float) -> float:
    """A number between the two."""
    return _source.uniform(low, high)
