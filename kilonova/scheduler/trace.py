"""What a decision was made of, for whoever asks later why, noted while it is made: as little work as can be.

Hosts dropped are kept as one byte each (which filter) with the verdicts on them; scores for the best `SCORES`. Verdicts
become text and groups only when the trace is shown or written, which is when they are let go (see `narration`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from kilonova.core import clock
from kilonova.core.decision import Outcome
from kilonova.core.scheduling import NoValidHost
from kilonova.scheduler.claim import Attempt
from kilonova.scheduler.plugins import Additions
from kilonova.scheduler.verdict import Verdict

REASONS = 20
SCORES = 50
KEPT = 100


@dataclass(slots=True, eq=False)
class FilterResult:
    """One filter of one server's round: hosts before and after, and what was said of each of the dropped."""

    name: str
    before: int
    after: int
    verdicts: list[tuple[str, Verdict]] = field(default_factory=list)

    @property
    def reasons(self) -> list[tuple[str, Verdict]]:
        """Why the first of the dropped were dropped."""
        return self.verdicts[:REASONS]


@dataclass(frozen=True, slots=True)
class Round:
    """The filters for one server, of several: `Trace.dropped_by` and `filters` while it is going on."""

    server: str
    filters: list[FilterResult]
    dropped_by: bytearray


@dataclass(slots=True)
class Trace:
    """One decision. dropped_by: per host of `hosts` 0 for kept, else the number (from 1) of the filter that dropped
    it; scores: host, total, part per weigher; seconds: per stage.

    filters and dropped_by are of the newest round, for `server`; first is the first one, once there is another.
    shortage: what the hosts lack when Placement has no candidates.
    """

    request_id: str | None
    servers: tuple[str, ...]
    spec: Any
    additions: list[tuple[str, Additions]] = field(default_factory=list)
    query: str = ""
    candidates: int = 0
    hosts: tuple[str, ...] = ()
    dropped_by: bytearray = field(default_factory=bytearray)
    filters: list[FilterResult] = field(default_factory=list)
    weighers: tuple[str, ...] = ()
    scores: list[tuple[str, float, tuple[float, ...]]] = field(default_factory=list)
    attempts: list[Attempt] = field(default_factory=list)
    winners: dict[str, str] = field(default_factory=dict)
    alternates: tuple[str, ...] = ()
    outcome: Outcome = Outcome.PLACED
    failure: str = ""
    explanation: str = ""
    seconds: dict[str, float] = field(default_factory=dict)
    server: str = ""
    first: Round | None = None
    shortage: FilterResult | None = None

    def next_round(self, server: str) -> None:
        """Begin to filter for this server. Of the rounds so far only the first is kept."""
        if self.server:
            if self.first is None:
                self.first = Round(self.server, self.filters, self.dropped_by)
            self.filters, self.dropped_by = [], bytearray(len(self.hosts))
        self.server = server

    def drop(self, result: FilterResult, dropped: Iterable[tuple[int, str, Verdict]]) -> None:
        """Note that a filter refused these hosts, each with its index in `hosts`."""
        number, said = min(self.filters.index(result) + 1, 255), result.verdicts
        for index, host, verdict in dropped:
            self.dropped_by[index] = number
            said.append((host, verdict))

    @contextmanager
    def timed(self, stage: str) -> Iterator[None]:
        """Add the time of the block to a stage."""
        started = clock.monotonic()
        try:
            yield
        finally:
            self.seconds[stage] = self.seconds.get(stage, 0.0) + clock.monotonic() - started

    def why(self) -> list[str]:
        """One sentence per filter that dropped hosts."""
        return [
            f"{row.name}: {row.before} → {row.after}"
            + "".join(f"; {host}: {verdict}" for host, verdict in row.reasons)
            for row in self.filters
            if row.after < row.before
        ]

    def __str__(self) -> str:
        timing = ", ".join(f"{stage} {seconds * 1000:.1f} ms" for stage, seconds in self.seconds.items())
        sizes = f"{len(self.servers)} servers, {self.candidates} candidates, {len(self.hosts)} hosts"
        lines = [
            f"decision for {sizes} ({timing})",
            *(f"{name} added {added}" for name, added in self.additions),
            f"query {self.query}",
            *self.why(),
            *(f"{host}: {total:.3f}" for host, total, _ in self.scores[:5]),
            f"winners {self.winners}; alternates {list(self.alternates)}; {self.failure or 'claimed'}",
        ]
        return "\n  ".join(lines)


def note_failure(trace: Trace, error: BaseException) -> None:
    """How the decision ended when it ended badly. (The error itself would hold the frames it went through.)"""
    trace.failure = str(error) or type(error).__name__
    trace.outcome = Outcome.NO_VALID_HOST if isinstance(error, NoValidHost) else Outcome.FAILED
    if isinstance(error, NoValidHost):
        trace.explanation = str(error.details.get("explanation", "")) or trace.failure


class Keeps(Protocol):
    """Who takes traces (`recorder.Recorder` is one). `add` is called before the answer: it must not wait or fail."""

    def add(self, trace: Trace) -> None: ...


class Ring:
    """The newest traces of a process, for those that keep none elsewhere."""

    def __init__(self, size: int = KEPT) -> None:
        self._traces: deque[Trace] = deque(maxlen=size)

    def add(self, trace: Trace) -> None:
        """Keep a trace, forgetting the oldest when full."""
        self._traces.append(trace)

    def newest(self) -> list[Trace]:
        """All that are kept, newest first."""
        return list(reversed(self._traces))

    def of(self, server: str) -> Trace | None:
        """The newest decision about a server."""
        return next((trace for trace in self.newest() if server in trace.servers), None)
