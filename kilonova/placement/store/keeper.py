"""Keeps the process's snapshot current: at every read it looks at the log's head and applies what is new.

A process that wrote something itself knows it from its notes, and reads only the changed numbers. Staleness can never
over-commit, because the claim decides; a periodic checksum starts anew when the snapshot has drifted, and counts it.
"""

from __future__ import annotations

import gc
import logging
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC

from sqlalchemy.engine import Connection

from kilonova.core import clock
from kilonova.core.metrics import Metric
from kilonova.placement.candidates import arrange
from kilonova.placement.candidates import snapshot as columns
from kilonova.placement.candidates.snapshot import Snapshot
from kilonova.placement.metrics import BEHIND, BYTES, DRIFTS, LOOKED, PROVIDERS, REFRESH, ROWS
from kilonova.placement.store import changes, loading, names
from kilonova.placement.store.changes import What
from kilonova.placement.store.names import Names
from kilonova.placement.store.transactions import Note, Writer

LOG = logging.getLogger(__name__)

CHECK_SECONDS = 60.0
"""How often the snapshot is compared with the store's own sums."""

_MANY = 1000
"""Providers from which on their objects are kept from the garbage collector."""

_ANEW_SHARE = 4
"""When more than a quarter of the providers changed, or is dead, starting anew is cheaper."""


@dataclass(frozen=True, slots=True)
class View:
    """What one request sees: the catalogue of names and the providers, as of one position of the log."""

    names: Names
    snapshot: Snapshot
    heads: Mapping[int, int]
    total: int


class Keeper:
    """Holds the newest view. `current` may be called from any thread."""

    def __init__(self, writer: Writer) -> None:
        self._writer, self._meters = writer, writer.meters
        self._lock = threading.Lock()
        self._view: View | None = None
        self._checked = 0.0
        self._looked = 0.0
        self._behind = 0
        self.rebuilds = 0
        self.drifts = 0
        self._meters.watch(self._figures)

    @property
    def latest(self) -> View:
        """The view as it was last brought up to date, without looking at the log again."""
        return self._view or self.current()

    def names(self, *, classes: Iterable[str] = (), traits: Iterable[str] = ()) -> Names:
        """A catalogue that has these names, if they exist; the newest one is read only when the held one does not."""
        held = self.latest.names
        known = all(name in held.class_ids for name in classes) and all(name in held.trait_ids for name in traits)
        return held if known else self.current().names

    def current(self) -> View:
        """A view that holds everything committed before the call."""
        with self._lock, self._writer.database.read() as connection:
            before, rebuilds, started = self._view, self.rebuilds, clock.monotonic()
            view = self._refreshed(connection)
            if clock.monotonic() - self._checked > CHECK_SECONDS:
                view = self._verified(connection, view)
            self._view, self._looked = view, clock.monotonic()
            self._behind = view.total - before.total if before is not None else 0
            if view is not before:
                how = "applied" if self.rebuilds == rebuilds else "rebuilt"
                self._meters.record(REFRESH, self._looked - started, how)
            return view

    def _figures(self) -> Iterator[tuple[Metric, float]]:
        """The gauges: read without the lock, which a rebuild holds for seconds."""
        view = self._view
        if view is not None:
            yield PROVIDERS, view.snapshot.live
            yield ROWS, len(view.snapshot)
            yield BYTES, columns.size(view.snapshot)
            yield BEHIND, self._behind
            yield LOOKED, clock.utcnow().replace(tzinfo=UTC).timestamp() - (clock.monotonic() - self._looked)

    def _refreshed(self, connection: Connection) -> View:
        view = self._view
        if view is None:
            return self._anew(connection)
        notes = self._writer.notes.take()  # before the counters: what is noted is committed, so the sum holds it
        total = changes.total(connection)
        if total == view.total:
            return view
        if total - view.total == len(notes):
            return self._applied(connection, view, _after(view, notes, total), changes.merged(n.touched for n in notes))
        delta = changes.since(connection, view.heads)
        self._writer.notes.forget()
        if not delta.complete:
            return self._anew(connection)
        moved = replace(view, heads=delta.heads, total=sum(delta.heads.values()))
        return self._applied(connection, view, moved, delta.touched)

    def _anew(self, connection: Connection) -> View:
        """Read everything. What commits meanwhile stands in the log after `heads` and is applied by the next read."""
        heads = changes.heads(connection)
        self._writer.notes.forget()
        self.rebuilds += 1
        self._checked = clock.monotonic()
        with _without_collector():
            snapshot = arrange.build(loading.everything(connection))
            if snapshot.live > _MANY:
                gc.freeze()  # none of it is part of a cycle, and a full collection would go through it each time
        return View(names.load(connection), snapshot, heads, sum(heads.values()))

    def _applied(self, connection: Connection, view: View, moved: View, touched: Mapping[int, What]) -> View:
        """The view after the changes; `moved` has the new position."""
        whole = [id_ for id_, what in touched.items() if what is What.WHOLE]
        usage = [id_ for id_, what in touched.items() if what is What.USAGE]
        snapshot = view.snapshot
        if len(whole) * _ANEW_SHARE > max(len(snapshot), 1000):
            return self._anew(connection)
        if usage:
            snapshot = arrange.with_usage(snapshot, loading.usages(connection, usage))
        if whole:
            snapshot = _with_trees(connection, snapshot, whole)
            if (len(snapshot) - snapshot.live) * _ANEW_SHARE > max(len(snapshot), 1000):
                return self._anew(connection)
        catalogue = names.load(connection) if changes.CATALOGUE in touched else view.names
        return replace(moved, names=catalogue, snapshot=snapshot)

    def _verified(self, connection: Connection, view: View) -> View:
        """Compare sums, when nothing was committed while they were taken."""
        self._checked = clock.monotonic()
        sums = loading.checksum(connection)
        if changes.total(connection) != view.total or sums == columns.checksum(view.snapshot):
            return view
        self.drifts += 1
        self._meters.record(DRIFTS)
        LOG.error("The placement snapshot has drifted from the store (%s); it is read anew.", sums)
        return self._anew(connection)


@contextmanager
def _without_collector() -> Iterator[None]:
    """For making many objects that stay: the collector would go through them again and again meanwhile."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def _after(view: View, notes: list[Note], total: int) -> View:
    heads = dict(view.heads)
    for note in notes:
        heads[note.slot] += 1
    return replace(view, heads=heads, total=total)


def _with_trees(connection: Connection, snapshot: Snapshot, touched: list[int]) -> Snapshot:
    """Read the trees of some providers again, those they stand in now and those they stood in."""
    rows = [snapshot.row_of[id_] for id_ in touched if id_ in snapshot.row_of]
    roots = {shown.id for row in rows if (shown := snapshot.shown[int(snapshot.root[row])]) is not None}
    facts = loading.trees(connection, touched, roots)
    present = {one.id for one in facts}
    before = [
        shown.id
        for root in roots
        for row in range(snapshot.row_of[root], snapshot.row_of[root] + int(snapshot.size[snapshot.row_of[root]]))
        if (shown := snapshot.shown[row]) is not None
    ]
    return arrange.change(snapshot, facts, {*touched, *before} - present)
