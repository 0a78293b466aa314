"""A decision as a document: the eight stages of scheduling in their order and with their numbers, and why.

`kilonova explain` shows this document, so what it says is said here.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from kilonova.core import clock
from kilonova.core.decision import Decision, Filtered, Round

Doc = dict[str, Any]

STAGES: Final = (
    "request", "request filters", "query", "candidates", "host states", "filters", "weighers", "claim",
)  # fmt: skip
"""In the order of the procedure; the first is number 1. Alternates are chosen with the claim."""


def story(decision: Decision) -> Doc:
    """The whole decision."""
    spec = decision.spec
    contents: dict[str, Doc] = {
        "request": {"spec": None if spec is None else msgspec.to_builtins(spec)},
        "request filters": {"added": [{"name": row.name, "text": row.text} for row in decision.additions]},
        "query": {"query": decision.query},
        "candidates": {
            "candidates": decision.candidates,
            "shortage": None if decision.shortage is None else _filter(decision.shortage),
        },
        "host states": {"hosts": decision.known_hosts},
        "filters": {"rounds": [_round(row) for row in decision.rounds]},
        "weighers": {"ranking": _ranking(decision), "why": why(decision)},
        "claim": {
            "tries": [msgspec.to_builtins(row) for row in decision.tries], "try_count": decision.try_count,
            "winners": decision.winners, "alternates": list(decision.alternates),
        },
    }  # fmt: skip
    return {
        "at": clock.iso_z(decision.at), "outcome": decision.outcome, "request_id": decision.request_id,
        "scheduler": decision.scheduler or None, "project_id": decision.project_id,
        "servers": list(decision.servers), "server_count": decision.server_count,
        "flavor": spec.flavor.name if spec is not None else None,
        "image": (spec.image.name or spec.image.id) if spec is not None else None,
        "failure": decision.failure or None, "explanation": decision.explanation or None,
        "milliseconds": round(sum(decision.milliseconds.values()), 3),
        "stages": [
            {"number": number, "name": name, "milliseconds": _spent(decision, name), **contents[name]}
            for number, name in enumerate(STAGES, 1)
        ],
    }  # fmt: skip


def _spent(decision: Decision, stage: str) -> float | None:
    spent = decision.milliseconds
    if stage == "claim" and "alternates" in spent:
        return round(spent.get("claim", 0.0) + spent["alternates"], 3)
    return spent.get(stage)


def _round(row: Round) -> Doc:
    return {"server": row.server, "filters": [_filter(each) for each in row.filters]}


def _filter(row: Filtered) -> Doc:
    return {
        "name": row.name, "before": row.before, "after": row.after,
        "reasons": [{"hosts": reason.hosts, "text": reason.text} for reason in row.reasons],
        "first": [{"host": refusal.host, "text": refusal.text} for refusal in row.first],
    }  # fmt: skip


def _ranking(decision: Decision) -> list[Doc]:
    return [
        {"host": row.host, "total": row.total, "shares": dict(zip(decision.weighers, row.shares, strict=False))}
        for row in decision.scores
    ]


def why(decision: Decision) -> str | None:
    """Why the first server's winner won over the second in the ranking; None without a winner."""
    winner = next(iter(decision.winners.values()), None)
    if winner is None:
        return None
    place = next((place for place, row in enumerate(decision.scores) if row.host == winner), None)
    if place is None:
        return f"{winner} was the only host that passed." if decision.known_hosts == 1 else f"{winner} was claimed."
    if len(decision.scores) == 1:
        return f"{winner} was the only host that passed, so nothing was weighed."
    refused = [row.host for row in decision.tries if not row.taken and row.server == decision.tries[0].server]
    if place and refused:
        return f"{winner} was number {place + 1} of the ranking; the claims on {', '.join(refused)} were refused."
    if place:
        return f"{winner} was number {place + 1} of the ranking: of the best one is drawn, or others took them."
    return _over_the_second(decision)


def _over_the_second(decision: Decision) -> str:
    first, second = decision.scores[:2]
    ahead = first.total - second.total
    if not ahead:
        return f"{first.host} and {second.host} weigh the same; {first.host} stood first in Placement's answer."
    shares = zip(decision.weighers, first.shares, second.shares, strict=False)
    differences = [(name, mine - other) for name, mine, other in shares if mine != other]
    differences.sort(key=lambda entry: -abs(entry[1]))
    told = ", ".join(f"{name} {difference:+.3f}" for name, difference in differences)
    return f"{first.host} is {ahead:.3f} ahead of {second.host}: {told}."


def fate(decision: Decision, host: str) -> Doc:
    """What became of one host."""
    what, text = _fate(decision, host)
    return {"host": host, "what": what, "text": text}


def _fate(decision: Decision, host: str) -> tuple[str, str]:
    won = [server for server, winner in decision.winners.items() if winner == host]
    if won:
        return "winner", f"It won {len(won)} of {decision.server_count} servers: {', '.join(won[:5])}."
    if decision.shortage is not None:
        own = next((row.text for row in decision.shortage.first if row.host == host), None)
        groups = "; ".join(f"{row.hosts} hosts: {row.text}" for row in decision.shortage.reasons[:3])
        return "no candidate", f"Placement has no candidate on it: {own or f'as on all others, of which {groups}'}."
    if host not in decision.hosts:
        return "unknown", _absent(decision)
    if dropped := _dropped(decision, host):
        return "dropped", dropped
    if any(row.host == host and not row.taken for row in decision.tries):
        return "refused", "It passed every filter; Placement refused the claim, because somebody else was faster."
    place = next((place for place, row in enumerate(decision.scores, 1) if row.host == host), None)
    ranked = f"number {place} of the ranking" if place else f"behind the first {len(decision.scores)} of the ranking"
    if host in decision.alternates:
        return "alternate", f"It passed every filter, was {ranked}, and is an alternate."
    return "passed", f"It passed every filter and was {ranked}."


def _absent(decision: Decision) -> str:
    if decision.known_hosts > len(decision.hosts):
        kept = f"{len(decision.hosts)} of {decision.known_hosts}"
        return f"It is not among the hosts whose fate is kept ({kept}), or was no candidate."
    return "Placement had no candidate on it: it has no room or lacks a trait, is in another aggregate, or unknown."


def _dropped(decision: Decision, host: str) -> str:
    index = decision.hosts.index(host)
    for row in decision.rounds:
        number = row.dropped_by[index] if index < len(row.dropped_by) else 0
        if not 0 < number <= len(row.filters):
            continue
        filtered = row.filters[number - 1]
        own = next((refusal.text for refusal in filtered.first if refusal.host == host), None)
        text = own or "; ".join(reason.text for reason in filtered.reasons[:3])
        return f"{filtered.name} dropped it for server {row.server}: {text}."
    return ""
