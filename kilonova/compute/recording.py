"""A recording: requests that were decided lately, and the hosts as they are, to schedule them again elsewhere.

Host states come from the databases; which hosts have which traits, Placement says, for the traits that hosts of ours
report and those that the requests named.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final
from urllib.parse import unquote_plus

import msgspec

from kilonova.compute.over_cells import read_each
from kilonova.compute.world import World
from kilonova.core import clock
from kilonova.core.decision import Decision
from kilonova.core.errors import Invalid, KilonovaError
from kilonova.core.request_spec import RequestSpec
from kilonova.db.queries import decisions, host_states
from kilonova.db.queries.host_states import AggregateRow, HostRow

FORMAT: Final = 1
_TRAIT: Final = re.compile(r"\b(?:COMPUTE|CUSTOM|HW|OWNER|STORAGE)_[A-Z0-9_]+\b")


class RecordingUnreadable(Invalid):
    """The document is no recording of a version that is known here."""

    code, message = "recording_unreadable", "The recording cannot be used: {reason}."


class Asked(msgspec.Struct, frozen=True):
    """One request, and whether it got its hosts."""

    spec: RequestSpec
    servers: int
    placed: bool


class Recording(msgspec.Struct, frozen=True):
    """requests: oldest first. traits: to the uuids of the hosts that have each."""

    format: int
    at: datetime
    requests: tuple[Asked, ...]
    hosts: tuple[HostRow, ...]
    aggregates: tuple[AggregateRow, ...]
    traits: dict[str, tuple[str, ...]]


def record(world: World, most: int) -> Recording:
    """The newest decisions, at most so many, and all hosts of the cells that can be read."""
    made = list(reversed(decisions.newest(world.cells.api, most)))
    requests = tuple(
        Asked(row.spec, row.server_count, bool(row.winners)) for row in made if row.spec is not None
    )
    hosts: list[HostRow] = []
    for cell, answers in read_each(world, lambda _connection: True):
        if answers:
            seen = host_states.agents_seen(cell.database)
            hosts += [_heard(row, seen) for row in host_states.all_hosts(cell.database, cell.uuid)]
    traits = _traits(world, made)
    aggregates = host_states.load_aggregates(world.cells.api)
    return Recording(FORMAT, clock.utcnow(), requests, tuple(hosts), aggregates, traits)


def _heard(row: HostRow, seen: Mapping[str, datetime]) -> HostRow:
    """The host with when it was last heard of: a recording has no agents."""
    last = seen.get(row.agent or "", row.last_seen_up)
    return msgspec.structs.replace(row, agent=None, last_seen_up=last)


def read(document: Any) -> Recording:
    """A recording from its document. RecordingUnreadable."""
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise RecordingUnreadable(reason="it is none that `kilonova record` of this version writes")
    try:
        return msgspec.convert(document, Recording)
    except msgspec.ValidationError as error:
        raise RecordingUnreadable(reason=str(error).replace("`", "")) from None


def _traits(world: World, made: Iterable[Decision]) -> dict[str, tuple[str, ...]]:
    import os_traits  # 20 ms, and few ask for this

    named = {trait for row in made for trait in _TRAIT.findall(unquote_plus(row.query))}
    found = {}
    for trait in sorted({*os_traits.get_traits("COMPUTE_"), *named}):
        hosts = _having(world, trait)
        if hosts:
            found[trait] = tuple(hosts)
    return found


def _having(world: World, trait: str) -> Sequence[str]:
    """The uuids of the root providers with a trait; none for a trait that Placement does not know."""
    try:
        rows = world.placement.list_providers(required=trait)
    except KilonovaError as error:
        if error.status < 500:
            return ()
        raise
    return sorted({str(row.get("root_provider_uuid") or row["uuid"]) for row in rows})
