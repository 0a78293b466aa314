"""However large a decision is, what is kept of it is bounded, and the counts are whole."""

from __future__ import annotations

import random
from datetime import datetime

import pytest

from kilonova.core.decision import (
    MOST_BYTES,
    Decision,
    Filtered,
    Outcome,
    Reason,
    Refusal,
    Round,
    Score,
    Try,
    packed,
    unpacked,
)
from kilonova.core.request_spec import FlavorSpec, RequestSpec

AT = datetime(2026, 1, 1)
DRAW = random.Random(1)


def noise(length: int) -> str:
    """Text that cannot be compressed to less than half."""
    return "".join(DRAW.choices("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", k=length))


def large(hosts: int, servers: int, extra: int = 0) -> Decision:
    names = tuple(noise(20) for _ in range(hosts))
    uuids = tuple(noise(36) for _ in range(servers))
    first = tuple(Refusal(name, noise(300)) for name in names[:20])
    filters = tuple(Filtered(noise(20), hosts, 0, (Reason(hosts, noise(300)),) * 20, first) for _ in range(20))
    flavor = FlavorSpec(id=1, flavorid="1", name="f", memory_mb=1, vcpus=1, root_gb=1)
    spec = RequestSpec("p", "u", flavor, scheduler_hints={noise(20): [noise(100)] for _ in range(extra)})
    return Decision(
        at=AT, outcome=Outcome.NO_VALID_HOST.value, servers=uuids, server_count=servers, spec=spec, query=noise(4000),
        known_hosts=hosts, hosts=names, rounds=(Round("s", filters, bytes(DRAW.choices(range(5), k=hosts))),) * 2,
        weighers=tuple(noise(20) for _ in range(20)),
        scores=tuple(Score(noise(20), 1.0, tuple(DRAW.random() for _ in range(20))) for _ in range(50)),
        tries=tuple(Try(noise(36), noise(20), False) for _ in range(100)),
        winners=dict.fromkeys(uuids, "h"), failure=noise(1000), explanation=noise(1000),
    )  # fmt: skip


@pytest.mark.parametrize(("hosts", "servers", "extra"), [(10, 1, 0), (2_000, 1, 0), (50_000, 1000, 0), (10, 1, 2000)])
def test_a_decision_takes_no_more_than_its_bound(hosts: int, servers: int, extra: int) -> None:
    decision = large(hosts, servers, extra)
    data = packed(decision)
    assert len(data) <= MOST_BYTES
    kept = unpacked(data)
    assert (kept.server_count, kept.known_hosts, kept.outcome) == (servers, hosts, Outcome.NO_VALID_HOST)
    assert [row.before for row in kept.rounds[0].filters] == [hosts] * 20
    assert all(row.reasons[0].hosts == hosts for row in kept.rounds[0].filters)
    assert len(kept.rounds[0].dropped_by) == len(kept.hosts)


def test_a_decision_of_a_thousand_hosts_with_plain_names_is_kept_whole() -> None:
    names = tuple(f"compute-{number:05}.example.org" for number in range(1000))
    first = tuple(Refusal(name, "it has 50 servers, the limit is 50") for name in names[:20])
    rows = tuple(Filtered(f"Filter{n}", 1000, 900, (Reason(100, "text"),), first) for n in range(10))
    decision = Decision(at=AT, outcome=Outcome.PLACED.value, known_hosts=1000, hosts=names,
                        rounds=(Round("s", rows, bytes(number % 11 for number in range(1000))),))  # fmt: skip
    assert unpacked(packed(decision)) == decision
