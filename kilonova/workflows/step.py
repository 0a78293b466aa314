"""The vocabulary of workflows: what a step is, how it ends, what it is given. Rows and protocols, no machinery.

A workflow is a declared list of steps with undo. A step function gets `(world, run)` and answers `Done`, `Parked`
or raises. The engine journals every transition (one commit a step), wakes parked steps, undoes in reverse after a
failure and survives being killed anywhere; see `engine`. The rules that a step function must keep:

* Idempotent and re-entrant. It is called again after every wake-up, after a crash and by a conductor that adopts the
  workflow. So it looks before it creates, and stores with `run.note` the key by which it will find its own work
  again BEFORE it creates something outside.
* It holds no thread while it waits: it answers `Parked`. A remote call it makes itself is bounded by a time-out.
* It makes no transaction of its own in the workflow's database for state that belongs to the step's result: that goes
  into `Done(write=…)`, which runs in the same transaction as the journal's row.
* It never writes task_state, instance actions, events or faults: the `Recorder` does, from the rows here.
* Undo runs, in reverse, for every step that STARTED, the failed one too; it must cope with nothing having been done.

This module knows nothing of servers, hosts or volumes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Protocol

import msgspec

from kilonova.bus.bus import Bus
from kilonova.bus.calls import Call, Ticket
from kilonova.core.context import Context
from kilonova.core.errors import KilonovaError
from kilonova.db.queries.journal import JournalTables
from kilonova.sql.engine import Connection, Database

Write = Callable[[Connection], None]
"""Extra SQL of a step, run inside the transaction that writes the journal. It must make no remote call. It may raise:
the transaction is rolled back and the step counts as failed."""

CANCEL = "cancel"
"""Name of the event, key = workflow id, that makes a workflow fail (code "cancelled") and undo, unless it is past its
`last_return` or undoing already. Send it with `preempt.cancel` or `engine.cancel`."""

ENDED = "ended"
"""Name of the event, key = workflow id, that other live workflows of the same subject get when one ends."""

VERB = "verb"
"""Name of the event, key = `Ticket.id`, that carries an agent's report."""


# -- how a step ends -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Done:
    """The step is finished. outputs: small, JSON-serialisable, found later as `run.outputs[step name]`."""

    outputs: Mapping[str, Any] = field(default_factory=dict)
    write: Write | None = None


@dataclass(frozen=True, slots=True)
class Parked:
    """Call the step again when one of `waits` = (event name, key) was delivered, or when `seconds` have passed.

    Events delivered before the wait are kept and count at once. Without waits it is a pause (polling). On the call
    after the deadline `run.expired` is true. Each `Parked` sets a new deadline; a limit on the step as a whole
    compares with `run.elapsed`. write: SQL committed together with the parking.
    """

    waits: Sequence[tuple[str, str]] = ()
    seconds: float = 60.0
    write: Write | None = None


Outcome = Done | Parked | None
"""None is `Done()`."""

StepFunction = Callable[[Any, "Run"], Outcome]
"""`do(world, run)` or `undo(world, run)`; raising means failed."""


def NOTHING(_world: Any, _run: Run) -> None:
    """The undo of a step that leaves nothing behind: a decision that is to be seen in the row."""


class Failure(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why a step failed, as it is journaled: an exception does not survive a restart.

    code, status and text are those of a KilonovaError, else "internal", 500 and the exception's words. retriable:
    `Alternates` may try its next candidate. details: the traceback's end.
    """

    step: str
    code: str
    text: str
    status: int = 500
    retriable: bool = True
    details: str = ""


class StepFailed(KilonovaError):
    """Raise this (or any exception with an attribute `retriable`) to say whether another candidate may be tried.

    Without the attribute: a KilonovaError is not retriable, any other exception is.
    """

    code, message = "step_failed", "The step failed."
    retriable: bool = False

    def __init__(self, text: str | None = None, /, *, retriable: bool = False, **details: Any) -> None:
        super().__init__(text, **details)
        self.retriable = retriable


class VerbFailed(StepFailed):
    """An agent reported that a verb failed, or did not report in time (`error_code` "verb_timeout").

    The journaled `Failure.code` is `error_code`, so that hooks can tell the agent's reasons apart.
    """

    code = "verb_failed"

    def __init__(self, error_code: str, text: str, *, retriable: bool) -> None:
        super().__init__(text, retriable=retriable)
        self.error_code = error_code


# -- what a step is given --------------------------------------------------------------------------------------------


class Delivered(NamedTuple):
    """An event that reached the workflow. A bus Event's payload is {"status": …}, a verb's the VerbReport's fields."""

    name: str
    key: str
    payload: dict[str, Any]


class Run(Protocol):
    """One workflow as its step sees it. Everything here is read, but for `note`, `if_lost` and `open_verb`.

    attempt starts at 1 and rises with every candidate of `Alternates`. epoch rises with every adoption, also by our
    own conductor after a restart, a stall, or trouble with the database: while it is 1 and `tries` is 0, a step
    that does not park has not been called before. expired: this call comes because the deadline of the last
    `Parked` passed. elapsed: seconds since the step (or its undo) was started, or was started anew after a failed
    try; pauses between its calls count. tries: how often this do (or undo) has failed and is being repeated.
    undoing: whether this is an undo. failure: what went wrong, while undoing and in the hooks.
    """

    @property
    def id(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def subject(self) -> str: ...
    @property
    def database(self) -> str: ...
    @property
    def step(self) -> str: ...
    @property
    def params(self) -> dict[str, Any]: ...
    @property
    def outputs(self) -> Mapping[str, dict[str, Any]]: ...
    @property
    def notes(self) -> Mapping[str, Any]: ...
    @property
    def ctx(self) -> Context: ...
    @property
    def epoch(self) -> int: ...
    @property
    def attempt(self) -> int: ...
    @property
    def tries(self) -> int: ...
    @property
    def expired(self) -> bool: ...
    @property
    def elapsed(self) -> float: ...
    @property
    def undoing(self) -> bool: ...
    @property
    def failure(self) -> Failure | None: ...
    @property
    def events(self) -> Sequence[Delivered]:
        """What was delivered and not yet consumed, oldest first. A step consumes what it waited for by finishing."""
        ...

    def event(self, name: str, key: str = "") -> Delivered | None:
        """The newest delivered event of that name and key."""
        ...

    def if_lost(self, take_back: Callable[[], None]) -> None:
        """Have this done when the call's end cannot be stored because another conductor has adopted the workflow.

        Whoever stood still while it was making something finds out only then; the other has looked before, found
        nothing, and made its own.
        """
        ...

    def note(self, key: str, value: Any) -> None:
        """Store `run.notes[key] = value` (None removes it) NOW, in a commit of its own; survives undo and attempts.

        Raises LostWorkflow when the workflow has been adopted by another conductor: let it pass.
        """
        ...

    def ticket(self, host: str) -> Ticket:
        """The ticket of this step's verb; the same at every call until the step (or its undo) is tried anew."""
        ...

    def open_verb(self, row: Call[Any, Any], request: Any, ticket: Ticket) -> None:
        """Cast a verb to the agent of `ticket.host` and keep sending until reported; used by `verbs.verb`."""
        ...


# -- the declared list -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Step:
    """One step. undo is mandatory; NOTHING is a visible decision.

    task_state: what the Recorder sets when the step starts (None leaves it). event: name of the instance action event
    the Recorder starts and finishes around the step. tries: how often `do` is tried when it raises an Unavailable
    (a service that does not answer), with a back-off of 1, 2, 4 … 30 s. An undo that raises is repeated with back-off
    1, 2, 4 … 60 s up to `undo_tries` times, then it is given up, logged and marked in the journal.
    """

    name: str
    do: StepFunction
    undo: StepFunction
    task_state: str | None = None
    event: str | None = None
    tries: int = 1
    undo_tries: int = 10


@dataclass(frozen=True, slots=True)
class Alternates:
    """Steps that are unwound and tried again with the next candidate after a retriable failure inside.

    next_candidate(world, run) is asked after the undo, with `run.attempt` still that of the failed attempt and
    `run.failure` set: whether there is a candidate for attempt + 1. It must be free of effects (it may be asked twice)
    and may read outputs of the steps before. Saying no, the failure goes outward: the steps before are undone. On yes
    the inner steps' outputs are cleared and they run again with `run.attempt` raised. retriable overrides
    `Failure.retriable`.
    """

    steps: tuple[Step, ...]
    next_candidate: Callable[[Any, Run], bool]
    retriable: Callable[[Failure], bool] | None = None


Hook = Callable[[Any, Run], Write | None]
FailureHook = Callable[[Any, Run, Failure], Write | None]


@dataclass(frozen=True, slots=True)
class Workflow:
    """A named list of steps; the name stands in the journal.

    last_return: name of the step after whose success nothing is undone any more: a later failure calls `on_error`.
    action: the instance action the Recorder opens (None: it writes no action). Hooks are re-entrant like steps, may
    make remote calls and answer a Write for the closing transaction:
    on_done(world, run) after the last step; raising counts as the last step's failure.
    on_failed(world, run, failure) after everything was undone (journal state "undone").
    on_error(world, run, failure) after a failure beyond last_return (journal state "failed"); default: on_failed.
    A raising on_failed/on_error is repeated with back-off, ten times at most.
    """

    name: str
    steps: tuple[Step | Alternates, ...]
    last_return: str | None = None
    action: str | None = None
    on_done: Hook | None = None
    on_failed: FailureHook | None = None
    on_error: FailureHook | None = None

    def __post_init__(self) -> None:
        names = [step.name for item in self.steps for step in (item.steps if isinstance(item, Alternates) else (item,))]
        if not names or len(set(names)) != len(names):
            raise ValueError(f"workflow {self.name}: step names must be there and differ: {names}")
        if self.last_return is not None and self.last_return not in names:
            raise ValueError(f"workflow {self.name}: last_return names no step: {self.last_return}")
        if sum(isinstance(item, Alternates) for item in self.steps) > 1:
            raise ValueError(f"workflow {self.name}: one Alternates at most")


# -- what the engine is given ------------------------------------------------------------------------------------------


class AgentAddress(NamedTuple):
    """Which agent process serves a host: its bus address, its present epoch, whether it is thought to be alive."""

    agent: str
    epoch: int
    up: bool


class World(Protocol):
    """The part of the world that the engine itself uses; steps get the same object and know its other parts."""

    @property
    def bus(self) -> Bus: ...

    def databases(self) -> Sequence[str]:
        """Names of the databases with a journal: "api" and the uuid of every cell."""
        ...

    def database(self, name: str) -> tuple[Database, JournalTables]:
        """One of them. KeyError for a name that is none."""
        ...

    def agent_of(self, host: str) -> AgentAddress | None:
        """Who serves a host; None when nobody ever did."""
        ...


class Recorder(Protocol):
    """Writes what users see of a workflow: task_state, instance actions and their events, faults.

    Every function runs inside the journal's transaction on `run.database` and must make no remote call. The pair
    finished(n), started(n + 1) comes in one transaction. `step_started` also comes again for each new attempt;
    after a failure, undo steps are not reported. error None means success.
    """

    def step_started(self, connection: Connection, run: Run, step: Step) -> None: ...
    def step_finished(self, connection: Connection, run: Run, step: Step, error: Failure | None) -> None: ...
    def workflow_finished(
        self, connection: Connection, run: Run, workflow: Workflow, error: Failure | None
    ) -> None: ...


class SilentRecorder:
    """Records nothing: for workflows that no user sees."""

    def step_started(self, connection: Connection, run: Run, step: Step) -> None:
        pass

    def step_finished(self, connection: Connection, run: Run, step: Step, error: Failure | None) -> None:
        pass

    def workflow_finished(self, connection: Connection, run: Run, workflow: Workflow, error: Failure | None) -> None:
        pass


class UnknownWorkflow(KilonovaError):
    """The journal names a workflow this release does not have."""

    code: ClassVar[str] = "unknown_workflow"
    message: ClassVar[str] = "There is no workflow called {name}."
