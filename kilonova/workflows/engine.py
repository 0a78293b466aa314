"""Runs journaled workflows: claims, advances each by one thread at a time, parks, wakes, lets go of lost ones.

The engine owns what is in memory: an entry per workflow that this conductor works on. Whatever it forgets is in the
journal. It knows no particular workflow. Tests and simulations give it an executor and timers of their own and call
`poll`, `renew` and `sweep` themselves; otherwise `start` begins a housekeeping thread.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from kilonova.bus.calls import Call, Event, Ticket, VerbReport, Wake, wake_workflow
from kilonova.core import clock
from kilonova.core.context import preserved
from kilonova.core.errors import KilonovaError
from kilonova.core.pool import Executor, Pool
from kilonova.db.queries import journal as sql
from kilonova.workflows import advance
from kilonova.workflows import plan as machine
from kilonova.workflows.desk import VerbDesk
from kilonova.workflows.housekeeping import Housekeeper
from kilonova.workflows.journal import WriteFailed, claim, commit, reload
from kilonova.workflows.plan import Body, Plan
from kilonova.workflows.run import ActiveRun, Entry, Ports
from kilonova.workflows.step import CANCEL, VERB, Delivered, Recorder, UnknownWorkflow, VerbFailed, Workflow, World
from kilonova.workflows.timers import Timers, TimerThread
from kilonova.workflows.verbs import payload_of

LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Settings:
    """lease_s must be several times renew_s. kept_runs: parked runs held in memory; others are read again on waking.

    retain_s: how long rows of workflows that ended are kept.
    """

    threads: int = 8
    lease_s: float = 15.0
    renew_s: float = 5.0
    poll_s: float = 2.0
    sweep_s: float = 30.0
    prune_s: float = 300.0
    retain_s: float = 3600.0
    verbs_per_agent: int = 500
    kept_runs: int = 500


class Engine:
    """One conductor's engine. me: the conductor's id, the same after a restart."""

    def __init__(
        self, world: World, workflows: Iterable[Workflow], recorder: Recorder, *, me: str, host: str = "",
        pool: Executor | None = None, timers: Timers | None = None, settings: Settings | None = None,
    ) -> None:  # fmt: skip
        self.settings = settings or Settings()
        self.me, self.host = me, host or me
        self._world = world
        self._plans: dict[str, Plan] = {workflow.name: machine.flatten(workflow) for workflow in workflows}
        self._pool: Executor = pool or Pool("workflow", self.settings.threads, service="conductor")
        self._timers: Timers = timers or TimerThread("deadlines")
        self._lock = threading.Lock()
        self._live: dict[tuple[str, str], Entry] = {}
        self._unknown: set[tuple[str, str]] = set()
        self._journals: dict[str, sql.Journal] = {}
        self._lapses: dict[str, int] = {}
        self._lease_ends: dict[str, float] = {}  # by our own clock, counted from before the renewal: never too late
        self._stopped = False
        self._housekeeper: Housekeeper | None = None
        self._recorder = recorder
        self.desk = VerbDesk(
            world.bus, world.agent_of, self._timers, self._pool, limit=self.settings.verbs_per_agent
        )
        self._ports = Ports(self._read_events, self._commit_note, self._open_verb)
        self._services = advance.Services(world, recorder, self.journal, self._parked, self._moved, self._ended)

    def start(self) -> None:
        """Recover, then keep house in a thread of its own."""
        self.recover()
        s = self.settings
        self._housekeeper = Housekeeper(
            [(self.renew, s.renew_s), (self.poll, s.poll_s), (self.sweep, s.sweep_s), (self.prune, s.prune_s)]
        )
        self._housekeeper.start()

    # -- what others ask ---------------------------------------------------------------------------------------------

    def wake(self, database: str, workflow: str) -> None:
        """There is something to do: a new workflow, or news for a parked one. KeyError for an unknown database."""
        self.journal(database)
        with self._lock:
            entry = self._live.get((database, workflow))
            if entry is None:
                entry = self._live[database, workflow] = Entry(database, workflow)
            entry.dirty = True
            self._signal(entry)

    def submit(self, database: str, new: sql.NewWorkflow) -> None:
        """Insert a workflow and run it; nothing happens when its id is there already."""
        journal = self.journal(database)
        with journal.database.write() as connection:
            sql.insert(connection, journal.tables, new)
        self.wake(database, new.id)

    def cancel(self, database: str, subject: str, workflow: str) -> None:
        """Make a workflow fail and undo, unless it is past its last return."""
        self.deliver([Event(database, subject, CANCEL, workflow)])

    def deliver(self, events: Sequence[Event]) -> None:
        """Keep events for the live workflows of their subjects, durably, and wake who waits for them."""
        by_database: dict[str, list[Event]] = {}
        for event in events:
            by_database.setdefault(event.database, []).append(event)
        for database, some in by_database.items():
            journal = self.journal(database)
            found: list[tuple[Event, list[sql.Live]]] = []
            with journal.database.write() as connection:
                for event in some:
                    payload = {"status": event.status}
                    if sql.add_event(connection, journal.tables, event.server, event.name, event.key, payload):
                        found.append((event, sql.live_of(connection, journal.tables, event.server)))
                    else:
                        LOG.info("unexpected event %s %s for %s", event.name, event.key, event.server)
            for event, live in found:
                self._news(database, live, event.name, event.key)

    def deliver_report(self, report: VerbReport) -> None:
        """An agent's report: straight to the workflow when it is here, else kept and its owner told."""
        ticket = report.ticket
        event = Delivered(VERB, ticket.id, payload_of(report))
        self.desk.close(ticket.id)
        with self._lock:
            entry = self._live.get((ticket.database, ticket.workflow))
            if entry is not None and entry.epoch is not None:
                entry.mail.append(event)
                self._signal_if(entry, event.name, event.key)
                return
        self._keep(ticket.database, ticket.workflow, ticket.server, event)

    def agent_seen(self, agent: str, epoch: int, in_hand: Sequence[str] = ()) -> None:
        """An agent's beat: verbs that it cannot know or does not list twice are sent again."""
        self.desk.agent_seen(agent, epoch, in_hand)

    @property
    def live(self) -> int:
        """How many workflows this conductor has, parked ones too."""
        return len(self._live)

    def journal(self, name: str) -> sql.Journal:
        """A database's journal as ours. KeyError."""
        found = self._journals.get(name)
        if found is None:
            database, tables = self._world.database(name)
            found = self._journals[name] = sql.Journal(database, tables, self.me)
        return found

    # -- housekeeping, called by its thread or by a test ---------------------------------------------------------------

    def recover(self) -> None:
        """Take a lease in every database, and our own work from before back at once."""
        for name in self._world.databases():
            self._lease(name)
            self._adopt_mine(name)

    def renew(self) -> None:
        """Renew our leases. One that had lapsed means that others may have our work: everything is looked at again."""
        for name in self._world.databases():
            self._renew(name)

    def poll(self, limit: int = 500) -> int:
        """Adopt workflows that nobody alive owns; how many were found."""
        found = 0
        for name in self._world.databases():
            journal = self.journal(name)
            with journal.database.read() as connection:
                ids = journal.orphans(connection, limit)
            for id_ in ids:
                if (name, id_) not in self._live and (name, id_) not in self._unknown:
                    found += 1
                    self.wake(name, id_)
        return found

    def sweep(self) -> None:
        """Look for events whose wake-up was lost on the way."""
        for name in self._world.databases():
            journal = self.journal(name)
            with journal.database.read() as connection:
                ids = journal.parked_with_events(connection)
            for id_ in ids:
                self.wake(name, id_)

    def prune(self) -> int:
        """Delete rows of workflows that ended long ago; how many."""
        count = 0
        for name in self._world.databases():
            journal = self.journal(name)
            while True:
                with journal.database.write() as connection:
                    batch = journal.prune(connection, self.settings.retain_s)
                count += batch
                if batch < 500:
                    break
        return count

    def close(self) -> None:
        """Take nothing new, let running steps end, give up the leases. What is parked stays in the journal."""
        self._stopped = True
        if self._housekeeper is not None:
            self._housekeeper.close()
        self._timers.close()
        self._pool.close()
        for name in self._world.databases():
            self._lease(name, -1.0)  # over already, however coarse the clock

    def _keep(self, database: str, workflow: str, subject: str, event: Delivered) -> None:
        """Store a report for a workflow that is not here, and tell who has it."""
        journal = self.journal(database)
        with journal.database.write() as connection:
            live = [one for one in sql.live_of(connection, journal.tables, subject) if one.id == workflow]
            if live:
                sql.add_event(connection, journal.tables, subject, event.name, event.key, event.payload)
        self._news(database, live, event.name, event.key)

    # -- one workflow ----------------------------------------------------------------------------------------------

    def _signal(self, entry: Entry) -> None:
        """Under the lock: have a thread look at an entry."""
        if entry.busy:
            entry.again = True
        elif not self._stopped:
            entry.busy = True
            self._pool.submit(self._work, entry)

    def _signal_if(self, entry: Entry, name: str, key: str) -> None:
        """Under the lock: the same if the event matters to it now."""
        if entry.busy or (name, key) in entry.waits or (name == CANCEL and key == entry.id):
            self._signal(entry)

    def _work(self, entry: Entry) -> None:
        while True:
            wait = self._attend(entry)
            with self._lock:
                if entry.gone:
                    return
                if entry.again and wait is None:
                    entry.again = False
                    continue
                entry.busy = entry.again = False
                if wait is not None:
                    self._set_timer(entry, wait, expired=False)
                elif entry.run is not None:
                    self._unload(entry)
                return

    def _attend(self, entry: Entry) -> float | None:
        """Advance until it parks or ends; seconds to wait before trying again after trouble, else None."""
        try:
            self._advance(entry)
        except sql.LostWorkflow as error:
            LOG.warning("%s", error)
            self._drop(entry)
            run, mail = entry.run, entry.mail
            if run is not None and mail:  # reports that came to us as the owner we are no longer
                for event in mail:
                    self._keep(entry.database, entry.id, run.subject, event)
        except Exception as error:
            entry.trouble += 1
            # what was committed is not known: the row is read again, at a higher epoch, so that steps look for what
            # the call before may have left outside
            entry.run, entry.epoch, entry.dirty = None, None, True
            wait = min(60.0, 0.25 * 2.0 ** min(entry.trouble, 10))
            LOG.warning("workflow %s: trying again in %.1f s", entry.id, wait, exc_info=error)
            return wait
        return None

    def _advance(self, entry: Entry) -> None:
        with preserved():
            while True:
                run = self._ready(entry)
                if run is None:
                    return
                run.ctx.update_store()
                with self._lock:
                    entry.waits = frozenset()
                    run.mail_seen = len(entry.mail)
                    run.expired, entry.expired = run.expired or entry.expired, False
                    if entry.timer is not None:
                        entry.timer.cancel()
                        entry.timer = None
                onward = advance.turn(self._services, run)
                run.expired = False
                if not onward or self._stopped:
                    return

    def _open(self, entry: Entry) -> ActiveRun | None:
        journal = self.journal(entry.database)
        entry.dirty = False  # before the row is read, which says whether there are events
        if entry.epoch is not None:
            entry.run = reload(journal, entry, lambda row: self._make(entry, row))
            return entry.run
        entry.run = self._claim(entry, journal)
        if entry.run is None:
            self._not_ours(entry, journal)
        return entry.run

    def _claim(self, entry: Entry, journal: sql.Journal) -> ActiveRun | None:
        try:
            return claim(journal, entry, lambda row: self._make(entry, row), self._recorder)
        except WriteFailed as error:
            entry.epoch, cause = None, error.cause
            if sql.transient(cause) and entry.trouble < advance.WRITE_TRIES:
                raise cause from error
        except BaseException:
            entry.epoch = None
            raise
        return claim(journal, entry, lambda row: self._stillborn(entry, row, cause), self._recorder)

    def _make(self, entry: Entry, row: sql.Row) -> ActiveRun | None:
        plan = self._plans.get(row.name)
        if plan is None:
            LOG.error("%s", UnknownWorkflow(name=row.name))
            self._unknown.add(entry.key)
            return None
        return ActiveRun(entry, row, plan, Body(row.state, row.step, machine.decode(row.log)), self._ports)

    def _stillborn(self, entry: Entry, row: sql.Row, error: Exception) -> ActiveRun | None:
        run = self._make(entry, row)
        if run is not None and run.body.fresh:
            run.body = advance.start_failed(run, error)
        return run

    def _not_ours(self, entry: Entry, journal: sql.Journal) -> None:
        """It could not be claimed: over, held, or another conductor's, who is told."""
        self._drop(entry)
        with journal.database.read() as connection:
            row = journal.load(connection, entry.id)
        if row is not None and row.state in sql.LIVE and row.owner not in (None, self.me):
            self._tell(str(row.owner), entry.database, entry.id)

    def _drop(self, entry: Entry) -> None:
        with self._lock:
            entry.gone = True
            if entry.timer is not None:
                entry.timer.cancel()
            if self._live.get(entry.key) is entry:
                del self._live[entry.key]
                if entry.again:  # something came for it meanwhile: the journal knows whether it is ours
                    self._signal(self._live.setdefault(entry.key, Entry(entry.database, entry.id)))
        self.desk.forget(entry.key)

    def _unload(self, entry: Entry) -> None:
        """Under the lock: a parked run beyond what memory may hold is dropped and read again when it wakes."""
        if len(self._live) > self.settings.kept_runs:
            entry.run, entry.dirty = None, True

    # -- what a turn tells -------------------------------------------------------------------------------------------

    def _parked(self, run: ActiveRun, waits: Sequence[tuple[str, str]], seconds: float) -> None:
        entry = run.entry
        with self._lock:
            entry.waits = frozenset(waits)
            self._set_timer(entry, seconds)

    def _set_timer(self, entry: Entry, seconds: float, *, expired: bool = True) -> None:
        if entry.timer is not None:
            entry.timer.cancel()
        entry.timer = self._timers.after(seconds, self._due, entry, expired)

    def _due(self, entry: Entry, expired: bool) -> None:
        with self._lock:
            if not entry.gone:
                entry.expired, entry.timer = entry.expired or expired, None
                self._signal(entry)

    def _moved(self, run: ActiveRun) -> None:
        self.desk.forget(run.entry.key)

    def _ended(self, run: ActiveRun, others: list[sql.Live]) -> None:
        LOG.info("workflow %s %s of %s ended: %s", run.name, run.id, run.subject, run.body.state)
        self._drop(run.entry)
        self._news(run.database, others, "ended", run.id)

    def _news(self, database: str, live: Iterable[sql.Live], name: str, key: str) -> None:
        """An event was stored: wake the workflows that are here, tell the owners of others."""
        for one in live:
            with self._lock:
                entry = self._live.get((database, one.id))
                if entry is not None:
                    entry.dirty = True
                    self._signal_if(entry, name, key)
                    continue
            if one.owner is not None and one.state in sql.LIVE:
                if one.owner == self.me:
                    self.wake(database, one.id)
                else:
                    self._tell(one.owner, database, one.id)

    def _tell(self, owner: str, database: str, workflow: str) -> None:
        try:
            self._world.bus.cast(wake_workflow, Wake(database, workflow), to=owner)
        except KilonovaError as error:
            LOG.info("conductor %s could not be told of workflow %s: %s", owner, workflow, error)

    # -- ports of a run ------------------------------------------------------------------------------------------------

    def _read_events(self, run: ActiveRun) -> list[sql.StoredEvent]:
        journal = self.journal(run.database)
        with journal.database.read() as connection:
            return journal.events(connection, run.subject)

    def _commit_note(self, run: ActiveRun, body: Body) -> None:
        commit(self.journal(run.database), run, body)

    def _open_verb(self, run: ActiveRun, row: Call[Any, Any], request: Any, ticket: Ticket) -> None:
        if not self.desk.open(run.entry.key, ticket.host, ticket.id, row, request, run.ctx):
            raise VerbFailed("no_agent", f"No agent serves host {ticket.host}.", retriable=True)

    def _ready(self, entry: Entry) -> ActiveRun | None:
        """The run, if we may go on with it: after a stall beyond our lease it must be claimed anew first."""
        if clock.monotonic() > self._lease_ends.get(entry.database, -1.0):
            self._renew(entry.database)
        lapses = self._lapses.get(entry.database, 0)
        if entry.lapses != lapses:
            entry.run, entry.epoch, entry.dirty, entry.lapses = None, None, True, lapses
        return entry.run or self._open(entry)

    # -- leases ----------------------------------------------------------------------------------------------------

    def _renew(self, name: str) -> None:
        known = name in self._lease_ends
        if self._lease(name) < 0 and known:
            LOG.warning("the lease of conductor %s in %s had lapsed", self.me, name)
            self._look_again(name)
            self._adopt_mine(name)

    def _lease(self, name: str, seconds: float | None = None) -> int:
        journal, before = self.journal(name), clock.monotonic()
        length = self.settings.lease_s if seconds is None else seconds
        with journal.database.write() as connection:
            left = journal.lease(connection, self.host, int(length * 1000))
        if left < 0 and name in self._lease_ends:
            self._lapses[name] = self._lapses.get(name, 0) + 1
        self._lease_ends[name] = before + length  # only now may a turn begin, and it sees the lapse
        return left

    def _adopt_mine(self, name: str) -> None:
        journal = self.journal(name)
        with journal.database.read() as connection:
            ids = journal.mine(connection)
        for id_ in ids:
            if (name, id_) not in self._live:
                self.wake(name, id_)

    def _look_again(self, name: str) -> None:
        """Claim every entry of a database anew: what has another owner by now is dropped."""
        with self._lock:
            for entry in [entry for entry in self._live.values() if entry.database == name]:
                self._signal(entry)
