"""The figures of a run as a table of words: ours, the target of each, and how many times better than the peer."""

from __future__ import annotations

from typing import Any

TARGETS: dict[str, str] = {
    "start.ready_s": "≤ 3",
    "idle.idle_cpu_percent": "< 2",
    "idle.rss_mb": "≤ 200",
    "single.post_p50_ms": "≤ 6",
    "single.active_p50_ms": "≤ 50",
    "burst8.per_s": "≥ 60",
    "burst8.cpu_ms": "≤ 14",
    "burst8.post_p50_ms": "≤ 50",
    "burst8.delete_per_s": "≥ 100",
    "multi50.active_s": "≤ 0.8",
    "reading.detail_p50_ms": "≤ 100",
    "hosts 1000.known_s": "≤ 10",
    "hosts 1000.idle_cpu_percent": "< 5",
    "hosts 10000.known_s": "≤ 60",
    "hosts 10000.again_s": "≤ 10",
    "hosts 10000.idle_cpu_percent": "< 10",
}
"""Section.figure to what is wanted of it; the figures without a target are shown as well."""


def table(figures: dict[str, dict[str, Any]]) -> str:
    """A Markdown table."""
    ours, peer = figures["kilonova"], figures.get("peer", {})
    rows = [("figure", "kilonova", "target", "peer", "times better"), ("---",) * 5]
    for section, values in ours.items():
        for name, value in values.items():
            other = peer.get(section, {}).get(name)
            key = f"{section}.{name}"
            times = "" if name == "foreign" else better(name, value, other)
            rows.append((key, str(value), TARGETS.get(key, ""), "" if other is None else str(other), times))
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def better(name: str, ours: float, peer: float | None) -> str:
    """How many times better ours is: rates by more, everything else by less."""
    if not peer or not ours:
        return ""
    ratio = ours / peer if name.endswith("per_s") else peer / ours
    return f"{ratio:.3g}"
