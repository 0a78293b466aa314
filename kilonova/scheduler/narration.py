"""From a trace to the decision that is kept: verdicts become groups and sentences, times become milliseconds.

This is the work that the trace put off. It is done after the answer, and for a failure's short form before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from kilonova.core.decision import Added, Decision, Filtered, Reason, Refusal, Round, Score, Try
from kilonova.core.request_spec import RequestSpec
from kilonova.scheduler.claim import Attempt
from kilonova.scheduler.grouping import grouped, nearest, shortened
from kilonova.scheduler.trace import FilterResult, Trace

TRIES = 100
_QUERY, _FAILURE = 4000, 1000  # characters


def decision_of(trace: Trace, at: datetime, scheduler: str = "") -> Decision:
    """The trace as it is kept. scheduler: which one decided, by name."""
    spec = trace.spec if isinstance(trace.spec, RequestSpec) else None
    return Decision(
        at=at, outcome=trace.outcome.value, scheduler=scheduler,
        project_id=spec.project_id if spec is not None else "", request_id=trace.request_id,
        servers=trace.servers, server_count=len(trace.servers), spec=spec,
        additions=tuple(Added(name, shortened(str(added), _FAILURE)) for name, added in trace.additions),
        query=shortened(trace.query, _QUERY), candidates=trace.candidates,
        shortage=filtered(trace.shortage) if trace.shortage is not None else None,
        known_hosts=len(trace.hosts), hosts=trace.hosts, rounds=_rounds(trace), weighers=trace.weighers,
        scores=tuple(Score(host, round(total, 6), tuple(round(part, 6) + 0.0 for part in parts))
                     for host, total, parts in trace.scores),
        tries=_tries(trace.attempts), try_count=len(trace.attempts), winners=dict(trace.winners),
        alternates=trace.alternates, failure=shortened(trace.failure, _FAILURE),
        explanation=shortened(trace.explanation, _FAILURE),
        milliseconds={stage: round(seconds * 1000, 3) for stage, seconds in trace.seconds.items()},
    )  # fmt: skip


def filtered(result: FilterResult) -> Filtered:
    """One filter with its reasons."""
    first = tuple(Refusal(host, shortened(str(verdict))) for host, verdict in result.reasons)
    return Filtered(result.name, result.before, result.after, groups_of(result), first)


def groups_of(result: FilterResult) -> tuple[Reason, ...]:
    """All the dropped hosts of a filter, in groups."""
    return grouped(verdict for _, verdict in result.verdicts)


def _rounds(trace: Trace) -> tuple[Round, ...]:
    """The first, and the newest when it is the one that found no host."""
    last = Round(trace.server, tuple(map(filtered, trace.filters)), bytes(trace.dropped_by))
    if trace.first is None:
        return (last,)
    first = Round(trace.first.server, tuple(map(filtered, trace.first.filters)), bytes(trace.first.dropped_by))
    return (first, last) if trace.failure else (first,)


def _tries(attempts: Sequence[Attempt]) -> tuple[Try, ...]:
    return tuple(Try(row.server, row.host, row.taken) for row in attempts[-TRIES:])


def explanation(trace: Trace, wanted: int, got: int) -> str:
    """Why there is no host, in short: which stage, which filter left none, and what came nearest."""
    found = f"{got} of {wanted} servers found a host. " if wanted > 1 else ""
    if not trace.candidates:
        return found + _no_candidates(trace)
    if not trace.hosts:
        return f"{found}Host states: no compute service is known for the {trace.candidates} candidates of Placement."
    culprit = next((row for row in trace.filters if row.after == 0 and row.before), None)
    if culprit is not None:
        return f"{found}Filters: {culprit.name} left none of {_hosts(culprit.before)}. {_why(culprit)}"
    if got:
        return f"{found}Claim: none of {_hosts(len(trace.hosts))} has room for one more."
    tried = len({row.host for row in trace.attempts if not row.taken})
    return f"{found}Claim: every host that passed was taken by somebody else in the meantime ({_hosts(tried)} tried)."


def _no_candidates(trace: Trace) -> str:
    lacking = trace.shortage
    if lacking is None:
        return "Candidates: Placement could not answer the query; the scheduler's log says what it answered."
    if not lacking.before:
        return "Candidates: Placement has none, and no host has reported itself to the scheduler."
    return f"Candidates: Placement has none of {_hosts(lacking.before)} for the request. {_why(lacking)}"


def _why(result: FilterResult) -> str:
    groups = "; ".join(f"{_hosts(row.hosts)}: {row.text}" for row in groups_of(result)[:3]) + "."
    close = nearest(result.verdicts) if len(result.verdicts) > 1 else None
    return groups if close is None else f"{groups} The nearest miss is {close[0]}: {close[1]}."


def _hosts(count: int) -> str:
    return "1 host" if count == 1 else f"{count} hosts"
