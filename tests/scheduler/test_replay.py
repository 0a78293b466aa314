"""Recorded requests scheduled again: the same seed gives the same, other settings give other hosts."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

import msgspec
import pytest

from kilonova.compute import recording
from kilonova.compute.recording import Asked, Recording, RecordingUnreadable
from kilonova.core import json
from kilonova.core.request_spec import GroupSpec, RequestSpec
from kilonova.scheduler.replay import Result, Terms, moved, replay
from kilonova.scheduler.settings import SchedulerSettings
from tests.scheduler.states import SMALL, aggregate, row

AT = datetime(2026, 1, 1)


def spec(**values: Any) -> RequestSpec:
    return RequestSpec(project_id="p", user_id="u", flavor=SMALL, **values)


def recorded(*requests: Asked, hosts: int = 4, **host: Any) -> Recording:
    rows = tuple(row(f"h{number}", agent=None, last_seen_up=AT, **host) for number in range(hosts))
    traits = {"OWNER_NOVA": tuple(each.uuid for each in rows)}
    groups = (aggregate("east", "h0", metadata={"availability_zone": "east"}),)
    return Recording(recording.FORMAT, AT, requests, rows, groups, traits)


EIGHT = tuple(Asked(spec(), 1, True) for _ in range(8))
SPREAD = Terms(SchedulerSettings())
PACK = Terms(SchedulerSettings(
    ram_weight_multiplier=-1.0, cpu_weight_multiplier=-1.0, disk_weight_multiplier=-1.0, io_ops_weight_multiplier=0.0
))  # fmt: skip


def test_weighers_that_pack_use_fewer_hosts_than_those_that_spread() -> None:
    spread, packed = replay(recorded(*EIGHT), SPREAD), replay(recorded(*EIGHT), PACK)
    assert (spread.placed, spread.hosts_used, round(spread.spread, 6)) == (8, 4, 0.0)
    assert (packed.placed, packed.hosts_used) == (8, 1)
    assert packed.packing > spread.packing
    assert packed.spread > spread.spread
    assert moved(spread, packed) == 6
    assert moved(spread, spread) == 0


def test_a_seed_gives_the_same_result_where_chance_decides() -> None:
    terms = Terms(SchedulerSettings(host_subset_size=4), seed=1)
    first, second = replay(recorded(*EIGHT), terms), replay(recorded(*EIGHT), terms)
    assert first == second
    others = [replay(recorded(*EIGHT), replace(terms, seed=seed)).placements for seed in range(2, 6)]
    assert any(other != first.placements for other in others)


def test_a_ratio_changes_how_many_fit_and_what_found_no_host_is_counted_by_what_left_none() -> None:
    made = recorded(Asked(spec(), 20, True), Asked(spec(), 12, True), hosts=2)  # eight fit on a host
    assert failures(replay(made, SPREAD)) == {"no room for all of a request": 20}
    wide = replay(made, replace(SPREAD, ratios={"ram": 2.0, "disk": 4.0}))
    assert (wide.placed, wide.failures) == (32, {})
    nowhere = spec(availability_zone="east")
    assert failures(replay(recorded(Asked(nowhere, 8, True), Asked(nowhere, 1, True)), SPREAD)) == {"no candidates": 1}


def failures(result: Result) -> dict[str, int]:
    return dict(result.failures)


def test_servers_that_are_there_count_unless_the_replay_begins_with_empty_hosts() -> None:
    full = recorded(*EIGHT, memory_mb_used=16384, free_ram_mb=0)
    assert failures(replay(full, SPREAD)) == {"no candidates": 8}
    assert replay(full, replace(SPREAD, empty=True)).placed == 8


def test_members_of_a_group_see_those_of_earlier_requests() -> None:
    group = GroupSpec(uuid="g", policy="anti-affinity")
    result = replay(recorded(*(Asked(spec(group=group), 1, True) for _ in range(5))), SPREAD)
    assert (result.placed, result.hosts_used) == (4, 4)
    assert failures(result) == {"ServerGroupAntiAffinityFilter": 1}


def test_a_recording_is_read_as_it_was_written_and_another_document_is_refused_in_a_sentence() -> None:
    made = recorded(*EIGHT)
    document = json.loads(json.dumps(msgspec.to_builtins(made)))
    assert recording.read(document) == made
    for wrong in ([], {}, {"format": 2}, document | {"hosts": 3}, document | {"requests": [{"spec": {}}]}):
        with pytest.raises(RecordingUnreadable, match=r"^The recording cannot be used: .*\.$"):
            recording.read(wrong)
