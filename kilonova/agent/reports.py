"""Tells the conductor about hosts: all at the first start, later only those whose record has changed.

At most 500 hosts a message, one beat an agent process. What was told and taken is remembered over restarts as a
fingerprint per host. It must not know placement; see `tracker`.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta

from kilonova.agent import inventory
from kilonova.agent.claims import NOTHING, Claims
from kilonova.agent.settings import AgentSettings
from kilonova.agent.state import AgentState
from kilonova.bus import calls
from kilonova.bus.bus import Bus
from kilonova.bus.calls import AgentBeat, BeatReply, HostReport, HostReports
from kilonova.core import clock
from kilonova.core.liveness import SERVICE_VERSION
from kilonova.core.skew import Skew
from kilonova.virt.driver import Driver, Inventory, Usage, need

BATCH = 500
_PROMPT = 1.0  # seconds: an answer that took longer says too little about the time


@dataclass(frozen=True, slots=True)
class Told:
    """What a batch of reports brought back: the hosts taken, and those of them whose service is disabled."""

    hosts: frozenset[str]
    disabled: frozenset[str]
    refused: frozenset[str]


class Reporter:
    """The agent's voice towards the conductor. Raises what `Bus.call` raises; nothing is lost then, only late."""

    def __init__(
        self, agent: str, epoch: int, bus: Bus, driver: Driver, state: AgentState, settings: AgentSettings,
        claims: Claims,
    ) -> None:  # fmt: skip
        self._agent, self._epoch, self._bus, self._state, self._settings = agent, epoch, bus, state, settings
        self._inventory, self._claims = need(driver, Inventory), claims
        self._sending = threading.Lock()
        self._prints = state.prints("report")
        self._lock = threading.Lock()
        self._changed: set[str] = set()
        self._refused: set[str] = set()
        self._skew = Skew("this host", "the control plane's")

    def beat(self, in_hand: tuple[str, ...], *, ask: bool, first: bool) -> BeatReply:
        """Say that the process is alive; `ask` for the disabled hosts, `first` whether ours are on record."""
        serving = len(self._inventory.hosts()) - len(self._refused)
        sent, before = clock.utcnow(), clock.monotonic()
        reply = self._bus.call(calls.agent_beat, AgentBeat(self._agent, self._epoch, serving, in_hand, ask, first))
        took = clock.monotonic() - before
        if reply.time is not None and took < _PROMPT:
            self._skew.seen(sent + timedelta(seconds=took / 2) - reply.time)
        return reply

    def forget(self) -> None:
        """The conductor knows nothing of our hosts: `tell` is to tell all of them again."""
        self._state.forget_prints("report", list(self._prints))
        self._prints.clear()

    def mark(self, host: str) -> None:
        """The host's usage has changed: report it with the next beat."""
        with self._lock:
            self._changed.add(host)

    def tell_marked(self) -> Iterator[Told]:
        """Report the hosts marked since the last time."""
        with self._lock:
            marked, self._changed = self._changed, set()
        try:
            yield from self.tell(sorted(marked))
        except BaseException:
            with self._lock:
                self._changed |= marked
            raise

    def tell(self, hosts: Sequence[str], *, always: bool = False) -> Iterator[Told]:
        """Report those of the hosts whose record changed, or all of them; one answer for each batch."""
        for start in range(0, len(hosts), BATCH):
            with self._sending:  # a record must not overtake a newer one of the same host
                batch = self._records(hosts[start : start + BATCH], always=always)
                told = self._send(batch) if batch else None
            if told is not None:
                yield told

    def _records(self, hosts: Sequence[str], *, always: bool) -> list[tuple[HostReport, bytes]]:
        usage, left = self._inventory.usage(hosts), self._claims.left(hosts)
        batch = []
        for host in hosts:
            record = inventory.host_report(
                self._inventory.facts(host), usage.get(host, _EMPTY), self._settings, left.get(host, NOTHING)
            )
            mark = inventory.report_print(record)
            if always or self._prints.get(host) != mark:
                batch.append((record, mark))
        return batch

    def _send(self, batch: Iterable[tuple[HostReport, bytes]]) -> Told:
        marks = {record.host: mark for record, mark in batch}
        message = HostReports(self._agent, self._epoch, SERVICE_VERSION, tuple(record for record, _ in batch))
        answer = self._bus.call(calls.host_reports, message)
        taken = {host: mark for host, mark in marks.items() if host not in answer.refused}
        self._refused = (self._refused - marks.keys()) | set(answer.refused)
        self._prints.update(taken)
        self._state.keep_prints("report", taken)
        return Told(frozenset(taken), frozenset(answer.disabled or ()), frozenset(answer.refused))


_EMPTY = Usage()
