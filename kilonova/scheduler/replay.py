"""Recorded requests scheduled again under some settings, offline, and what the hosts look like afterwards.

The same recording, settings and seed give the same result: randomness, if any is configured, is drawn from the seed.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from msgspec.structs import replace as changed

from kilonova.compute.recording import Asked, Recording
from kilonova.core import ids, liveness
from kilonova.core.errors import KilonovaError
from kilonova.core.request_spec import RequestSpec
from kilonova.db.queries.host_states import HostRow
from kilonova.scheduler import pipeline
from kilonova.scheduler.host_state import Aggregates, Consumed, Snapshot
from kilonova.scheduler.pipeline import Moment, Pipeline
from kilonova.scheduler.placing import Selections
from kilonova.scheduler.replay_placement import ReplayPlacement
from kilonova.scheduler.request import Request, group_of
from kilonova.scheduler.settings import SchedulerSettings
from kilonova.scheduler.topology import wanted_by
from kilonova.scheduler.trace import Trace, note_failure

_NAMESPACE: Final = "8f0d3c0e-6b0a-4d9f-9a57-5d1d0c5f7d11"


@dataclass(frozen=True, slots=True)
class Terms:
    """Under what a replay runs. ratios: in the place of the hosts' own, by `cpu`, `ram` and `disk`. empty: the hosts
    begin without the servers that they had.
    """

    settings: SchedulerSettings
    ratios: Mapping[str, float] = field(default_factory=dict)
    empty: bool = False
    seed: int = 0


@dataclass(slots=True)
class Result:
    """What came of it. placements: server (number of the request, number in it) to host. failures: servers that found
    none, by what left no host. hosts_used: those with a server. packing: how full these are, memory, on average.
    spread: standard deviation of that over all hosts. Both from 0 to 1.
    """

    servers: int = 0
    placed: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    placements: dict[tuple[int, int], str] = field(default_factory=dict)
    hosts: int = 0
    hosts_used: int = 0
    packing: float = 0.0
    spread: float = 0.0
    fullest: float = 0.0


def replay(recording: Recording, terms: Terms) -> Result:
    """Schedule every request of the recording, in its order."""
    ids.seed(terms.seed)
    try:
        return _Replay(recording, terms).run()
    finally:
        ids.seed(None)


class _Replay:
    """One run: the hosts as they fill."""

    def __init__(self, recording: Recording, terms: Terms) -> None:
        self._requests, self._at, self._terms = recording.requests, recording.at, terms
        rows = [_begin(row, terms) for row in recording.hosts]
        self._rows = {row.uuid: row for row in rows}
        self._seen: dict[str, datetime] = {}
        self._aggregates = Aggregates(recording.aggregates)
        self._placement = ReplayPlacement(rows, recording.aggregates, recording.traits)
        self._guests: dict[str, Consumed] = {}
        self._groups: dict[str, dict[str, str]] = {}
        self._pipeline: Pipeline = pipeline.build(terms.settings, self._placement, lambda snapshot, _: snapshot)
        self._down = liveness.down_after(terms.settings.report_interval, terms.settings.service_down_time)

    def run(self) -> Result:
        result = Result(hosts=len(self._rows))
        for number, asked in enumerate(self._requests):
            self._schedule(number, asked, result)
        self._measure(result)
        return result

    def _schedule(self, number: int, asked: Asked, result: Result) -> None:
        servers = tuple(ids.derived_uuid(_NAMESPACE, f"{number}/{index}") for index in range(asked.servers))
        trace = Trace(None, servers, asked.spec)
        result.servers += len(servers)
        group = group_of(asked.spec, self._groups.get(asked.spec.group.uuid, {}) if asked.spec.group else {})
        snapshot = Snapshot(self._rows, self._seen, self._aggregates)
        request = Request(asked.spec, self._terms.settings, snapshot, group=group)
        try:
            found = pipeline.select_destinations(
                self._pipeline, request, servers, Moment(self._guests, self._is_up), trace, alternates=False
            )
        except KilonovaError as error:
            note_failure(trace, error)
            result.failures[_culprit(trace)] += len(servers)
            return
        result.placed += len(servers)
        self._fill(asked.spec, found, servers)
        result.placements.update({(number, index): row[0].host for index, row in enumerate(found)})

    def _is_up(self, seen: datetime | None) -> bool:
        return liveness.is_up(seen, self._at, self._down)

    def _fill(self, spec: RequestSpec, found: Selections, servers: tuple[str, ...]) -> None:
        rows, guest = dict(self._rows), wanted_by(spec)
        for server, (winner, *_rest) in zip(servers, found, strict=True):
            rows[winner.provider_uuid] = _with_server(rows[winner.provider_uuid], spec)
            if guest:
                known = self._guests.get(winner.provider_uuid, Consumed(self._at))
                self._guests[winner.provider_uuid] = changed(known, guests=(*known.guests, guest))
            if spec.group is not None:
                self._groups.setdefault(spec.group.uuid, {})[server] = winner.host
        self._rows = rows

    def _measure(self, result: Result) -> None:
        fills = []
        for uuid, capacity in self._placement.capacity.items():
            used, total = self._placement.used[uuid], capacity["MEMORY_MB"]
            fills.append(used["MEMORY_MB"] / total if total else 0.0)
        used_hosts = [fill for fill in fills if fill > 0]
        result.hosts_used = len(used_hosts)
        if fills:
            mean = sum(fills) / len(fills)
            result.packing = sum(used_hosts) / len(used_hosts) if used_hosts else 0.0
            result.spread = math.sqrt(sum((fill - mean) ** 2 for fill in fills) / len(fills))
            result.fullest = max(fills)


def _begin(row: HostRow, terms: Terms) -> HostRow:
    ratios = {f"{name}_allocation_ratio": ratio for name, ratio in terms.ratios.items()}
    row = changed(row, agent=None, **ratios)
    if not terms.empty:
        return row
    stats = {name: value for name, value in row.stats.items() if name not in ("num_instances", "io_workload")}
    return changed(
        row, vcpus_used=0, memory_mb_used=0, local_gb_used=0, free_ram_mb=row.memory_mb, free_disk_gb=row.local_gb,
        running_vms=0, current_workload=0, failed_builds=0, disk_available_least=None, stats=stats,
    )  # fmt: skip


def _with_server(row: HostRow, spec: RequestSpec) -> HostRow:
    flavor = spec.flavor
    disk = flavor.ephemeral_gb + (0 if spec.is_bfv else flavor.root_gb)
    servers = row.stats.get("num_instances")
    stats = {**row.stats, "num_instances": int(servers) + 1} if servers is not None else row.stats
    return changed(
        row, vcpus_used=row.vcpus_used + flavor.vcpus, memory_mb_used=row.memory_mb_used + flavor.memory_mb,
        local_gb_used=row.local_gb_used + disk, free_ram_mb=row.free_ram_mb - flavor.memory_mb,
        free_disk_gb=row.free_disk_gb - disk, running_vms=row.running_vms + 1, stats=stats,
    )  # fmt: skip


def _culprit(trace: Trace) -> str:
    if not trace.candidates:
        return "no candidates"
    return next((row.name for row in trace.filters if row.before and not row.after), "no room for all of a request")


def moved(one: Result, other: Result) -> int:
    """How many servers that were placed in both runs are on another host."""
    return sum(other.placements[key] != host for key, host in one.placements.items() if key in other.placements)


