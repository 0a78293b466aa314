"""What the parts of our Placement cost by themselves, in this process: no HTTP, no tokens, one thread.

Times are the least of several: what a part needs when nothing disturbs it. Peer figures do not exist for these.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from benchmarks.cloud import Figures
from benchmarks.placement import queries
from benchmarks.placement.worlds import World
from kilonova.core import ids
from kilonova.http.op import Request
from kilonova.http.validate import QueryReader
from kilonova.placement.api import candidate_query, candidate_view
from kilonova.placement.api.allocation_candidates import OPS, SHARING
from kilonova.placement.candidates import arrange, search
from kilonova.placement.candidates.request import Query
from kilonova.placement.candidates.snapshot import Snapshot, size
from kilonova.placement.store import claims, loading
from kilonova.placement.store.claims import Claim, Incomplete
from kilonova.placement.store.keeper import Keeper, View
from kilonova.placement.store.transactions import Writer
from kilonova.placement.versions import VERSIONS
from kilonova.sql.engine import Database


def inside(url: str, world: World) -> dict[str, Figures]:
    """Figures by name; all times in milliseconds."""
    database = Database(url, pool_size=2)
    try:
        figures = {"start": _start(database)}
        keeper = Keeper(Writer(database))
        view = keeper.current()
        if world.shape != "wide":
            figures["refresh"] = _refresh(view.snapshot) | _refresh_with_store(database, world)
        view = keeper.current()
        return figures | {f"query: {name}": _query(view, path) for name, path in queries.candidates(world).items()}
    finally:
        database.dispose()


def _start(database: Database) -> Figures:
    """Reading everything and arranging it; what it takes of memory."""
    before = _resident()
    with database.read() as connection:
        read, facts = _timed(lambda: loading.everything(connection))
    built, snapshot = _timed(partial(arrange.build, facts))
    del facts
    count = max(1, snapshot.live)
    return {
        "read": read, "arrange": built, "providers": snapshot.live,
        "bytes_of_numpy_per_provider": round(size(snapshot) / count),
        "bytes_resident_per_provider": round((_resident() - before) / count),
    }  # fmt: skip


def _refresh(snapshot: Snapshot) -> Figures:
    """One provider's use changed, in memory."""
    shown = next(shown for shown in snapshot.shown if shown is not None and shown.classes)
    usage = {shown.id: (7, dict.fromkeys(shown.classes, 3))}
    return {"with_usage": _least(lambda: arrange.with_usage(snapshot, usage), 200)}


def _refresh_with_store(database: Database, world: World) -> Figures:
    """From a claim's commit to a view that has it: in the process that wrote, and in another one."""
    writer, other = Writer(database), Keeper(Writer(database))
    keeper = Keeper(writer)
    names = keeper.current().names
    other.current()
    own: list[float] = []
    others: list[float] = []
    for n in range(50):
        wanted = Claim(ids.new_uuid(), world.claim(n % world.hosts), "p", "u", "INSTANCE", True, None)
        claims.write(writer, names, [wanted], known={}, incomplete=Incomplete())
        own.append(_timed(keeper.current)[0])
        others.append(_timed(other.current)[0])
    idle = _least(keeper.current, 200)
    return {"own_claim": sorted(own)[len(own) // 2], "claim_of_another": sorted(others)[len(others) // 2],
            "nothing_new": idle}  # fmt: skip


def _query(view: View, path: str) -> Figures:
    """Search and encoding; encoding once as the first of its kind, then with the kept summaries."""
    query = _read(path, view)
    sharing = view.names.trait_ids.get(SHARING)
    answers = search.find(view.snapshot, query, sharing=sharing)
    first, body = _timed(lambda: candidate_view.encoded(answers, view.snapshot, view.names))
    return {
        "search": _least(lambda: search.find(view.snapshot, query, sharing=sharing), 10),
        "encode": _least(lambda: candidate_view.encoded(answers, view.snapshot, view.names), 10),
        "encode_first": first, "answers": len(answers.rows), "bytes": len(body),
    }  # fmt: skip


def _read(path: str, view: View) -> Query:
    """The query as the service reads it."""
    values: dict[str, list[str]] = {}
    for name, value in parse_qsl(path.partition("?")[2]):
        values.setdefault(name, []).append(value)
    request = Request(_NoApp(), {}, None)  # type: ignore[arg-type]
    request.op, request.version = OPS[0], VERSIONS.maximum
    assert OPS[0].query is not None
    request.query = QueryReader(OPS[0].query, VERSIONS.maximum).read(values)
    return candidate_query.read(request, view.names)


class _NoApp:
    """A request wants to know of its service whether it is relaxed, and nothing else here."""

    class service:
        relaxed = False


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    started = time.perf_counter()
    result = work()
    return round((time.perf_counter() - started) * 1000, 3), result


def _least(work: Callable[[], Any], times: int) -> float:
    return min(_timed(work)[0] for _ in range(times))
