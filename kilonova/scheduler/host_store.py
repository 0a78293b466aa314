"""The hosts in memory: one immutable snapshot, kept current by changes and replaced as a whole.

Freshness: aggregates are compared at every request (one small statement), because a wrong zone places a server wrongly;
hosts, services and beats at most once in `CHECK_EVERY` seconds, and at once for hosts that a `hosts_changed` message
names or that Placement knows and we do not. `RELOAD_EVERY` seconds bound what any lost message or skewed clock can do.
Nothing happens without requests. It must not know how hosts are chosen.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Protocol

from kilonova.core import clock
from kilonova.core.host_fit import NO_WISHES, Wanted
from kilonova.core.request_spec import FlavorSpec
from kilonova.db.queries import host_states as queries
from kilonova.db.queries.host_states import HostRow
from kilonova.scheduler.host_state import Aggregates, Consumed, Snapshot
from kilonova.sql.engine import Database

LOG = logging.getLogger(__name__)

CHECK_EVERY = 1.0
RELOAD_EVERY = 300.0
OVERLAP = timedelta(seconds=10)
"""How far back changed rows are read again: clocks of writers differ, and a row is stamped before it is committed."""
CONSUMED_FOR = timedelta(seconds=120)
"""How long a claim is added to a host whose row says nothing new: its build may have failed before it got there."""


class Databases(Protocol):
    """Where the scheduler reads: the API database, and each cell's by the cell's uuid (`cells.Cells` is one)."""

    @property
    def api(self) -> Database: ...

    def database(self, name: str) -> Database: ...


class _Cell:
    """What was read of one cell."""

    def __init__(self) -> None:
        self.mark: queries.Mark = ()
        self.loaded = float("-inf")
        self.newest: datetime | None = None
        self.checked: datetime | None = None
        self.hosts: dict[str, HostRow] = {}
        self.uuid_of: dict[str, str] = {}
        self.seen: dict[str, datetime] = {}

    def put(self, rows: Iterable[HostRow], read: Iterable[str]) -> None:
        """Take these rows in; of the hosts in `read`, those without a row are gone. Old snapshots keep their dict."""
        hosts = dict(self.hosts)
        for host in read:
            hosts.pop(self.uuid_of.pop(host, ""), None)
        for row in rows:
            if row.disk_available_least is not None and row.disk_available_least > row.free_disk_gb:
                _warn_of_disk(row)
            hosts[row.uuid] = row
            self.uuid_of[row.host] = row.uuid
        self.hosts = hosts


class HostStore:
    """The snapshot and the claims it does not show yet. Safe from any thread."""

    def __init__(self, databases: Databases) -> None:
        self._databases = databases
        self._lock = threading.Lock()
        self._cells: dict[str, _Cell] = {}
        self._aggregates = Aggregates()
        self._aggregate_mark: queries.Mark = ()
        self._checked = float("-inf")
        self._dirty: set[str] = set()
        self._unknown: frozenset[str] = frozenset()
        self._serviceless: dict[str, set[tuple[str, str]]] = {}
        self._snapshot = Snapshot({}, {}, Aggregates())
        self._consumed: dict[str, Consumed] = {}

    def invalidate(self, hosts: Sequence[str]) -> None:
        """These hosts changed, or all of them when none is named; they are read before the next request."""
        with self._lock:
            self._dirty.update(hosts)
            if not hosts:
                self._checked = float("-inf")
                for cell in self._cells.values():
                    cell.loaded = float("-inf")

    def snapshot(self) -> Snapshot:
        """The hosts as they are now."""
        with self._lock:
            changed = self._refresh_aggregates()
            now = clock.monotonic()
            if now - self._checked >= CHECK_EVERY:
                self._checked = now
                changed = self._refresh_hosts(now) or changed
            if self._dirty:
                changed = self._read_dirty() or changed
            if changed:
                self._snapshot = self._assembled()
            return self._snapshot

    def find_hosts(self, snapshot: Snapshot, providers: Iterable[str]) -> Snapshot:
        """A snapshot read after these providers were missed in `snapshot`; without providers it is read in any case.
        One that is still unknown (no compute service reports it) is then left to the regular check.
        """
        asked = frozenset(providers)
        wanted = asked
        with self._lock:
            if self._snapshot is not snapshot:  # somebody else has refreshed in the meantime
                snapshot = self._snapshot
                wanted = asked - snapshot.hosts.keys()
            if asked and wanted <= self._unknown:
                return snapshot
            self._checked = clock.monotonic()
            if self._refresh_hosts(self._checked):
                self._snapshot = self._assembled()
            missing = wanted - self._snapshot.hosts.keys()
            if missing - self._unknown:
                LOG.warning("No compute service record found for the providers %s", sorted(missing)[:20])
            self._unknown = missing
            return self._snapshot

    def consumed(self) -> Mapping[str, Consumed]:
        """Claims that the hosts' rows do not show yet, by provider."""
        with self._lock:
            return dict(self._consumed)

    def note_claims(self, providers: Iterable[str], flavor: FlavorSpec, guest: Wanted = NO_WISHES) -> None:
        """Servers of this flavor were claimed on these providers (one for each time it is named).

        guest: what each wants of NUMA cells and devices.
        """
        now = clock.utcnow()
        with self._lock:
            for uuid in providers:
                row = self._snapshot.hosts.get(uuid)
                known = self._consumed.get(uuid)
                if known is None or (row is not None and row.changed_at > known.at):
                    known = Consumed(now)
                self._consumed[uuid] = known.plus(flavor, now, guest)

    def members(self, group: str, others: Iterable[str]) -> dict[str, str | None]:
        """The host of each member of the group, and of `others`, that is on one; None for a deleted server."""
        return self._placed(sorted({*queries.group_members(self._databases.api, group), *others}))

    def hosts_of(self, servers: Iterable[str]) -> dict[str, str]:
        """The host of each of these servers that is on one."""
        wanted = sorted(set(servers))
        return {server: host for server, host in self._placed(wanted).items() if host is not None} if wanted else {}

    def _placed(self, uuids: Sequence[str]) -> dict[str, str | None]:
        found: dict[str, str | None] = {}
        for uuid in self._cell_uuids():
            with tolerated(uuid):
                found.update(queries.member_hosts(self._databases.database(uuid), uuids))
        return found

    def _cell_uuids(self) -> list[str]:
        with self._lock:
            return list(self._cells)

    def _refresh_aggregates(self) -> bool:
        mark = queries.aggregate_mark(self._databases.api)
        if mark == self._aggregate_mark:
            return False
        self._aggregates = Aggregates(queries.load_aggregates(self._databases.api))
        self._aggregate_mark = mark
        return True

    def _refresh_hosts(self, now: float) -> bool:
        self._forget_consumed()
        uuids = queries.enabled_cells(self._databases.api)
        changed = False
        for uuid in [uuid for uuid in self._cells if uuid not in uuids]:
            del self._cells[uuid]
            changed = True
        for uuid in uuids:
            cell = self._cells.get(uuid) or _Cell()
            self._cells[uuid] = _Cell()  # what stays when the cell cannot be read
            with tolerated(uuid):
                changed = self._refresh_cell(uuid, cell, now) or changed
                self._cells[uuid] = cell
            changed = changed or self._cells[uuid] is not cell
        return changed

    def _refresh_cell(self, uuid: str, cell: _Cell, now: float) -> bool:
        database = self._databases.database(uuid)
        seen = queries.agents_seen(database)
        changed = seen != cell.seen
        cell.seen = seen
        mark = queries.host_mark(database)
        before, cell.checked = cell.checked, clock.utcnow()
        if (
            now - cell.loaded >= RELOAD_EVERY
            or cell.newest is None
            or before is None
            or _counts(mark) != _counts(cell.mark)
        ):
            cell.hosts, cell.uuid_of = {}, {}
            cell.put(queries.all_hosts(database, uuid), ())
            cell.loaded = now
            self._warn_of_serviceless(uuid, queries.without_service(database))
        elif mark != cell.mark:
            cell.put(queries.hosts_since(database, uuid, min(cell.newest, before) - OVERLAP), ())
        else:
            return changed
        cell.mark = mark
        cell.newest = max((row.changed_at for row in cell.hosts.values()), default=None)
        return True

    def _warn_of_serviceless(self, cell: str, found: Iterable[tuple[str, str]]) -> None:
        """Once for each node, and again when it had a service meanwhile."""
        now, before = set(found), self._serviceless.get(cell, set())
        for host, node in sorted(now - before):
            LOG.warning("No compute service record found for host %s: its node %s gets no servers", host, node)
        self._serviceless[cell] = now

    def _read_dirty(self) -> bool:
        names, self._dirty = self._dirty, set()
        for uuid, cell in self._cells.items():
            with tolerated(uuid):
                cell.put(queries.hosts_named(self._databases.database(uuid), uuid, names), names)
        return True

    def _forget_consumed(self) -> None:
        oldest = clock.utcnow() - CONSUMED_FOR
        self._consumed = {uuid: row for uuid, row in self._consumed.items() if row.at >= oldest}

    def _assembled(self) -> Snapshot:
        hosts: dict[str, HostRow] = {}
        seen: dict[str, datetime] = {}
        for cell in self._cells.values():
            hosts.update(cell.hosts)
            seen.update(cell.seen)
        return Snapshot(hosts, seen, self._aggregates)


def _warn_of_disk(row: HostRow) -> None:
    LOG.warning(
        "Host %s has more disk space than its database expected (%d GB > %d GB)",
        row.host, row.disk_available_least, row.free_disk_gb,
    )  # fmt: skip


@contextmanager
def tolerated(cell: str) -> Iterator[None]:
    """A cell that cannot be read is warned of; it gives no hosts, and the others go on."""
    try:
        yield
    except Exception:
        LOG.warning("Failed to get the computes of cell %s", cell, exc_info=True)


def _counts(mark: queries.Mark) -> tuple[object, ...]:
    """The numbers of rows in a mark of hosts: every third value."""
    return tuple(mark[::3])
