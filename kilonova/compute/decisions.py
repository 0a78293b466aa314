"""Scheduling decisions as an administrator looks them up: lists, and one by its number, a server or a request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kilonova.compute.world import World
from kilonova.core import ids
from kilonova.core.decision import Decision
from kilonova.core.errors import Invalid, NotFound
from kilonova.db.queries import decisions
from kilonova.db.queries.decisions import DecisionFilter as DecisionFilter
from kilonova.db.queries.decisions import Listed

_OLDER: Final = 20
_MOST_DIGITS: Final = 18


class DecisionNotFound(NotFound):
    """Nothing is kept about it."""

    code = "decision_not_found"
    message = (
        "No scheduling decision about {reference} is kept: it may be too old, not made yet, or this is no server, "
        "request or decision."
    )


class DecisionMarkerInvalid(Invalid):
    """The marker is not a decision's number."""

    code, message = "marker_invalid", "The marker {marker} is not the number of a decision."


@dataclass(frozen=True, slots=True)
class Found:
    """The newest decision of what was looked for. older: numbers of further ones, newest first."""

    number: int
    decision: Decision
    older: tuple[int, ...] = ()


def page(world: World, wanted: DecisionFilter, limit: int, marker: str | None) -> list[Listed]:
    """The newest decisions that match, after the one with the number `marker`. DecisionMarkerInvalid."""
    below = _number(marker) if marker is not None else None
    if marker is not None and below is None:
        raise DecisionMarkerInvalid(marker=marker)
    return decisions.every(world.cells.api, wanted, limit, below) if limit else []


def find(world: World, reference: str) -> Found:
    """By a decision's number, else the newest about a server or of a request. DecisionNotFound."""
    api = world.cells.api
    numbers: tuple[int, ...]
    if (number := _number(reference)) is not None:
        numbers = (number,)
    elif ids.is_uuid_like(reference):
        numbers = tuple(decisions.numbers_of_server(api, ids.canonical_uuid(reference), _OLDER + 1))
    else:
        numbers = tuple(decisions.numbers_of_request(api, reference[:64], _OLDER + 1))
    decision = decisions.get(api, numbers[0]) if numbers else None
    if decision is None:
        raise DecisionNotFound(reference=reference)
    return Found(numbers[0], decision, numbers[1:])


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS else None
