"""One workflow in memory: what a step is shown of it (`step.Run`), and the entry by which the engine keeps it.

Nothing here decides; the entry's fields are guarded by the engine's lock, the run belongs to the one thread that is
advancing it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC
from typing import Any

from kilonova.bus.calls import Call, Ticket
from kilonova.core import clock, json
from kilonova.core.context import Context, from_message
from kilonova.db.queries import journal as sql
from kilonova.workflows import plan as machine
from kilonova.workflows.plan import Body, Plan
from kilonova.workflows.step import VERB, Delivered, Failure
from kilonova.workflows.timers import Timer


def now_ms() -> int:
    """Milliseconds since 1970 by this process's clock."""
    return int(clock.utcnow().replace(tzinfo=UTC).timestamp() * 1000)


@dataclass(slots=True, eq=False)
class Entry:
    """A workflow this conductor works on. epoch None: still to be claimed. run None: not held in memory just now.

    busy: a thread has it; again: something came meanwhile. mail: reports that are in memory only (whoever sent them
    sends them again). dirty: the database may hold events that the run has not read. lapses: how often
    our lease had lapsed when it was claimed.
    """

    database: str
    id: str
    epoch: int | None = None
    run: ActiveRun | None = None
    busy: bool = False
    again: bool = False
    gone: bool = False
    dirty: bool = True
    expired: bool = False
    waits: frozenset[tuple[str, str]] = frozenset()
    mail: list[Delivered] = field(default_factory=list)
    timer: Timer | None = None
    trouble: int = 0
    lapses: int = 0

    @property
    def key(self) -> tuple[str, str]:
        return self.database, self.id


@dataclass(frozen=True, slots=True)
class Ports:
    """What a run does through its engine."""

    read_events: Callable[[ActiveRun], list[sql.StoredEvent]]
    commit_note: Callable[[ActiveRun, Body], None]
    open_verb: Callable[[ActiveRun, Call[Any, Any], Any, Ticket], None]


class ActiveRun:
    """See `step.Run`."""

    __slots__ = (
        "_ports",
        "_stored",
        "body",
        "ctx",
        "entry",
        "expired",
        "mail_seen",
        "name",
        "params",
        "plan",
        "regrets",
        "subject",
        "used",
    )  # fmt: skip

    def __init__(self, entry: Entry, row: sql.Row, plan: Plan, body: Body, ports: Ports) -> None:
        self.entry, self.plan, self.body = entry, plan, body
        self.name, self.subject = row.name, row.subject
        self.params: dict[str, Any] = json.loads(row.params)
        self.ctx: Context = from_message(json.loads(row.context), overwrite=False)
        self.expired = row.state == "parked" and row.wake_in is not None and row.wake_in <= 0
        self.mail_seen = 0
        self.used: set[tuple[str, str]] = set()
        self.regrets: list[Callable[[], None]] = []
        self._stored: list[tuple[int, Delivered]] = []
        entry.dirty = entry.dirty or row.eventful
        self._ports = ports

    def if_lost(self, take_back: Callable[[], None]) -> None:
        self.regrets.append(take_back)

    @property
    def id(self) -> str:
        return self.entry.id

    @property
    def database(self) -> str:
        return self.entry.database

    @property
    def epoch(self) -> int:
        return self.entry.epoch or 0

    @property
    def step(self) -> str:
        return self.plan.steps[max(0, self.body.step)].name

    @property
    def outputs(self) -> Mapping[str, dict[str, Any]]:
        return self.body.log.outputs

    @property
    def notes(self) -> Mapping[str, Any]:
        return self.body.log.notes

    @property
    def attempt(self) -> int:
        return self.body.log.attempt

    @property
    def tries(self) -> int:
        return self.body.log.tries

    @property
    def elapsed(self) -> float:
        return max(0, now_ms() - self.body.log.since) / 1000

    @property
    def undoing(self) -> bool:
        return self.body.log.back is not None

    @property
    def failure(self) -> Failure | None:
        return self.body.log.failure

    @property
    def events(self) -> Sequence[Delivered]:
        self.refresh()
        return [event for _, event in self._stored] + self.entry.mail

    def event(self, name: str, key: str = "") -> Delivered | None:
        found = [event for event in self.events if event.name == name and event.key == key]
        if not found:
            return None
        self.used.add((name, key))
        return found[-1]

    def note(self, key: str, value: Any) -> None:
        self._ports.commit_note(self, machine.noted(self.body, key, value))

    def ticket(self, host: str) -> Ticket:
        step = self.step + (".undo" if self.undoing else "") + (f".{self.tries}" if self.tries else "")
        return Ticket(self.database, self.id, step, self.attempt, self.epoch, self.subject, host)

    def open_verb(self, row: Call[Any, Any], request: Any, ticket: Ticket) -> None:
        self._ports.open_verb(self, row, request, ticket)

    # -- for the engine ----------------------------------------------------------------------------------------------

    def refresh(self) -> bool:
        """Read the database's events if there may be new ones; whether there were."""
        if not self.entry.dirty:
            return False
        self.entry.dirty = False  # before reading: what comes later makes it dirty again
        known = {id_ for id_, _ in self._stored}
        rows = self._ports.read_events(self)
        self._stored = [(row.id, Delivered(row.name, row.key, json.loads(row.payload))) for row in rows]
        return any(id_ not in known for id_, _ in self._stored)

    def news(self, waits: Sequence[tuple[str, str]]) -> bool:
        """Whether one of the waits has come since the step was called."""
        return (self.refresh() or len(self.entry.mail) > self.mail_seen) and self.has(waits)

    @property
    def eventful(self) -> bool:
        """Whether the database may hold events of the subject."""
        return self.entry.dirty or bool(self._stored)

    def has(self, waits: Sequence[tuple[str, str]]) -> bool:
        """Whether one of the waits has come."""
        wanted = set(waits)
        return any((event.name, event.key) in wanted for event in self.events)

    def consumed(self) -> list[int]:
        """Ids of stored events that the current step waited for or looked at."""
        taken = self.used | set(self.body.log.waits)
        return [id_ for id_, event in self._stored if (event.name, event.key) in taken]

    def forget(self, ids: Sequence[int]) -> None:
        """The step is over: its events, and reports of any verb, are of no more use."""
        gone = set(ids)
        self._stored = [(id_, event) for id_, event in self._stored if id_ not in gone]
        self.entry.mail[:] = [event for event in self.entry.mail if event.name != VERB]
        self.used = set()
