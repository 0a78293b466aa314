"""One conductor, a clock that jumps, a recorder that remembers, and step functions that say that they were called."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kilonova.bus.calls import Event
from kilonova.core.errors import Conflict
from kilonova.db.queries import journal as sql
from kilonova.sql.engine import Database
from kilonova.workflows.step import Done, Failure, Parked, Run, Step, Workflow
from tests.workflows.harness import Driver, Faults, JumpingClock, Stage
from tests.workflows.toy import CELL, SERVER, begin, make_world, rows

Seen = list[Any]


class Recording:
    """A recorder that remembers, with the number of the commit it belongs to."""

    def __init__(self, faults: Faults) -> None:
        self.faults, self.seen = faults, []  # type: ignore[var-annotated]
        self.refuse: set[str] = set()

    def step_started(self, connection: Any, run: Run, step: Step) -> None:
        if step.name in self.refuse:
            raise Conflict(f"not {step.name}")
        self.seen.append((self.faults.commits, "started", step.name))

    def step_finished(self, connection: Any, run: Run, step: Step, error: Failure | None) -> None:
        self.seen.append((self.faults.commits, "finished", step.name, error and error.code))

    def workflow_finished(self, connection: Any, run: Run, workflow: Workflow, error: Failure | None) -> None:
        self.seen.append((self.faults.commits, "over", workflow.name, error and error.code))


class Lab:
    """A conductor over one cell, and workflows made on the spot."""

    def __init__(self, cell: Database, jumping: JumpingClock) -> None:
        self.faults = Faults()
        self.world, self.pool = make_world(cell, self.faults)
        self.clock, self.recorder = jumping, Recording(self.faults)

    def open(self, *workflows: Workflow) -> Driver:
        stage = Stage(self.world, workflows, lambda: None, lambda: None, self.pool, self.world.bus,
                      recorder=self.recorder)  # fmt: skip
        self.driver = Driver(stage, self.clock)
        self.engine = self.driver.engine
        self.engine.recover()
        return self.driver

    def begin(self, name: str = "w", id_: str = "w1", subject: str = SERVER) -> None:
        begin(self.world, ["host-1"], id_=id_, name=name, subject=subject)
        self.engine.wake(CELL, id_)
        self.pool.run()

    def event(self, name: str, key: str = "", subject: str = SERVER) -> None:
        self.engine.deliver([Event(CELL, subject, name, key)])
        self.pool.run()

    def row(self, id_: str = "w1") -> sql.Row:
        database, tables = self.world.database(CELL)
        with database.read() as connection:
            found = sql.Journal(database, tables, "test").load(connection, id_)
        assert found is not None
        return found

    @property
    def states(self) -> dict[str, str]:
        return rows(self.world)


def said(seen: Seen, word: str, result: Any = None) -> Callable[[Any, Run], Any]:
    """A step function that says a word and then answers or raises."""

    def function(_world: Any, run: Run) -> Any:
        seen.append(word)
        if isinstance(result, Exception):
            raise result
        return result

    return function


def waiting(seen: Seen, *waits: tuple[str, str], seconds: float = 60) -> Callable[[Any, Run], Any]:
    """A do that is done when all its events came."""

    def function(_world: Any, run: Run) -> Any:
        seen.append(("expired" if run.expired else "called", len(run.events)))
        if all(run.event(*wait) for wait in waits):
            return Done()
        return None if run.expired else Parked(waits, seconds)

    return function


def steps(seen: Seen, *names: str, **failures: Exception) -> tuple[Step, ...]:
    """Steps that say their names, and undos that say `-name`; some raise."""
    return tuple(Step(n, said(seen, n, failures.get(n)), undo=said(seen, f"-{n}")) for n in names)
