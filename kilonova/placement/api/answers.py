"""What every Placement answer has in common: the Accept check, Last-Modified and Cache-Control, names in paths."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, TypeVar

from kilonova.core import clock
from kilonova.core.errors import KilonovaError
from kilonova.http.fields import Int, Raw
from kilonova.http.op import Answer, Headers, Op, Request
from kilonova.placement.dialect import accepts_json
from kilonova.placement.errors import BadRequest
from kilonova.placement.store import providers
from kilonova.placement.store.providers import Provider

T = TypeVar("T")

STAMPS_SINCE = (1, 15)

GENERATION = Int(strict=True)


def name(pattern: str) -> Raw:
    """A name of a pattern. Its `$` alone would let a line break pass at the end."""
    return Raw({"type": "string", "minLength": 1, "maxLength": 255, "pattern": pattern, "not": {"pattern": "\n"}})


def words(most: int) -> Raw:
    """Any text of one to so many characters. Null is none of them: PostgreSQL does not store it."""
    return Raw({"type": "string", "minLength": 1, "maxLength": most, "not": {"pattern": r"\x00"}})


NAME = name("^[A-Z0-9_]+$")
CUSTOM_NAME = name("^CUSTOM_[A-Z0-9_]+$")
END = r"$(?!\n)"
CLASS_NAME_PATTERN = "^[A-Z0-9_]+" + END
UUID_PATTERN = "^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}" + END


class NotAcceptable(KilonovaError):
    """The client wants something that is not JSON."""

    status, code, message = 406, "not_acceptable", "Only application/json is provided."


@dataclass(frozen=True, slots=True)
class Dated:
    """An answer that says when its subject last changed; None is for what has no stored time (so: now)."""

    body: Any = None
    stamp: datetime | None = None
    status: int | None = None
    headers: Headers = ()


def finished(op: Op) -> Op:
    """The row with a handler that adds what all answers have."""
    handler = op.handler
    reads = op.method == "GET" and op.ok == 200

    def handle(req: Request) -> Answer:
        if reads:
            accept = req.header("Accept")
            if accept and not accepts_json(accept):
                raise NotAcceptable
        result = handler(req)
        if isinstance(result, Answer):
            return result
        dated = result if isinstance(result, Dated) else Dated(result, clock.utcnow())
        headers = dated.headers
        if req.version is not None and req.version >= STAMPS_SINCE and (dated.stamp or dated.body is not None):
            headers = (*headers, ("Last-Modified", http_date(dated.stamp or clock.utcnow())),
                       ("Cache-Control", "no-cache"))  # fmt: skip
        return Answer(dated.body, dated.status, headers, None if dated.body is not None else "")

    return replace(op, handler=handle)


_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def http_date(moment: datetime) -> str:
    """A naive UTC time as HTTP writes it, whatever the locale."""
    return (
        f"{_DAYS[moment.weekday()]}, {moment.day:02} {_MONTHS[moment.month - 1]} {moment.year} "
        f"{moment.hour:02}:{moment.minute:02}:{moment.second:02} GMT"
    )


def newest(stamps: Iterable[datetime]) -> datetime | None:
    """The latest of some times."""
    return max(stamps, default=None)


def provider_id(req: Request) -> str:
    """The provider's UUID in the path, in the usual form."""
    return req.path["uuid"].lower()


def by_uuid(given: Mapping[str, T]) -> dict[str, T]:
    """The members of an object by UUID in the usual form. BadRequest when two differ in case only."""
    found = {uuid.lower(): value for uuid, value in given.items()}
    if len(found) < len(given):
        twice = Counter(uuid.lower() for uuid in given).most_common(1)[0][0]
        raise BadRequest(f"JSON does not validate: {twice} is there more than once, in different cases.")
    return found


def provider_of(req: Request) -> Provider:
    """The provider in the path, for rows that say that there is none before they say what is wrong with a body."""
    with req.world.database.read() as connection:
        return providers.show(connection, provider_id(req))
