"""A scheduling decision as it is kept, sent and shown: what was asked, what every stage did, and why the winner won.

Plain frozen structs, the same in database, bus and API. Fields are only ever added, and optional: a decision kept by
the release before stays readable. It must not know how hosts are chosen.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from datetime import datetime
from enum import StrEnum

import msgspec

from kilonova.core.request_spec import RequestSpec

MOST_BYTES = 32 * 1024
"""No decision takes more, compressed."""


class Outcome(StrEnum):
    """How a decision ended. Kept and sent as text: a later release may know more of them."""

    PLACED = "placed"
    NO_VALID_HOST = "no_valid_host"
    FAILED = "failed"


class Reason(msgspec.Struct, frozen=True, omit_defaults=True):
    """Hosts that one thing spoke against. text: with what the numbers of all of them are, from least to most."""

    hosts: int
    text: str


class Refusal(msgspec.Struct, frozen=True):
    """One host, and what spoke against it, with its own numbers."""

    host: str
    text: str


class Filtered(msgspec.Struct, frozen=True, omit_defaults=True):
    """One filter: hosts before and after, all the dropped ones in groups, the first of them by name."""

    name: str
    before: int
    after: int
    reasons: tuple[Reason, ...] = ()
    first: tuple[Refusal, ...] = ()


class Round(msgspec.Struct, frozen=True, omit_defaults=True):
    """The filters for one server of the request. dropped_by: a byte per host of the decision, 0 for one that passed,
    else the number (from 1) of the filter that dropped it.
    """

    server: str
    filters: tuple[Filtered, ...] = ()
    dropped_by: bytes = b""


class Score(msgspec.Struct, frozen=True):
    """One host's weight, and the share of each weigher in it."""

    host: str
    total: float
    shares: tuple[float, ...]


class Try(msgspec.Struct, frozen=True):
    """A claim that was tried."""

    server: str
    host: str
    taken: bool


class Added(msgspec.Struct, frozen=True):
    """What a request filter added to the question put to Placement, in words."""

    name: str
    text: str


class Decision(msgspec.Struct, frozen=True, omit_defaults=True):
    """One decision.

    hosts: those with a state, in the order of `dropped_by`; the first `len(hosts)` of `known_hosts` where the rest was
    cut. rounds: the first server's, and the last one's where that found none. milliseconds: by stage. shortage: when
    Placement had no candidates, what the hosts lack by their last reports. explanation: the short form of a failure.
    """

    at: datetime
    outcome: str
    project_id: str = ""
    request_id: str | None = None
    scheduler: str = ""
    servers: tuple[str, ...] = ()
    server_count: int = 0
    spec: RequestSpec | None = None
    additions: tuple[Added, ...] = ()
    query: str = ""
    candidates: int = 0
    shortage: Filtered | None = None
    known_hosts: int = 0
    hosts: tuple[str, ...] = ()
    rounds: tuple[Round, ...] = ()
    weighers: tuple[str, ...] = ()
    scores: tuple[Score, ...] = ()
    tries: tuple[Try, ...] = ()
    try_count: int = 0
    winners: dict[str, str] = {}
    alternates: tuple[str, ...] = ()
    failure: str = ""
    explanation: str = ""
    milliseconds: dict[str, float] = {}


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Decision).decode


def packed(decision: Decision) -> bytes:
    """The decision, compressed: at most `MOST_BYTES`, for which the longest parts are cut."""
    for cut in (_whole, _fewer_names, _few_servers, _no_hosts, _bare):
        decision = cut(decision)
        data = zlib.compress(_encode(decision), 3)
        while len(data) > MOST_BYTES and cut is _fewer_names and len(decision.hosts) > 1:
            decision = _first_hosts(decision, len(decision.hosts) // 2)
            data = zlib.compress(_encode(decision), 3)
        if len(data) <= MOST_BYTES:
            break
    return data


def unpacked(data: bytes) -> Decision:
    """The decision that was packed."""
    return _decode(zlib.decompress(data))


def _whole(decision: Decision) -> Decision:
    return decision


def _fewer_names(decision: Decision) -> Decision:
    """The first few of each filter by name only, and then (see `packed`) the fates of fewer hosts."""
    return _with_rounds(decision, lambda row: msgspec.structs.replace(row, first=row.first[:5]))


def _first_hosts(decision: Decision, count: int) -> Decision:
    rounds = tuple(msgspec.structs.replace(row, dropped_by=row.dropped_by[:count]) for row in decision.rounds)
    return msgspec.structs.replace(decision, hosts=decision.hosts[:count], rounds=rounds)


def _few_servers(decision: Decision) -> Decision:
    kept = decision.servers[:100]
    winners = {server: host for server, host in decision.winners.items() if server in kept}
    return msgspec.structs.replace(decision, servers=kept, winners=winners)


def _no_hosts(decision: Decision) -> Decision:
    return msgspec.structs.replace(_first_hosts(decision, 0), spec=None, tries=decision.tries[-5:], query="")


def _bare(decision: Decision) -> Decision:
    """What always fits."""
    few = msgspec.structs.replace(decision, scores=(), weighers=(), additions=(), alternates=(), shortage=None)
    return _with_rounds(few, lambda row: msgspec.structs.replace(row, first=(), reasons=row.reasons[:1]))


def _with_rounds(decision: Decision, change: Callable[[Filtered], Filtered]) -> Decision:
    rounds = tuple(
        msgspec.structs.replace(row, filters=tuple(map(change, row.filters))) for row in decision.rounds
    )
    return msgspec.structs.replace(decision, rounds=rounds)
