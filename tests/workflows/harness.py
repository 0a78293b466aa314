"""A kit that kills workflows at every point and drives them to the end, for toys and for real ones.

Write a function `make(faults, folder) -> Stage`: a fresh world whose databases are `FaultyDatabase`, the workflows, a
`begin` that inserts the journal row, and a `check` that raises when the end is not stable or something leaks. Then:

    assert_survives_crashes(make, tmp_path)                      kill before and after each commit and each effect
    assert_survives_crashes(make, tmp_path, fail="spawn")        the same while step "spawn" fails: crashes in undo
    assert_survives_failures(make, tmp_path)                     fail at each step, before and after its work
    assert_repeats_are_harmless(make, tmp_path)                  every do and every undo twice

Everything runs in one thread under a clock that jumps to the next deadline. Fakes of outside services call
`faults.effect("what")` after they have done something: it is a point to be killed at, between a remote success and our
write. Casts between conductor and agents go through a LocalBus over `stage.pool`; a crash loses those on their way.
"""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Literal

from kilonova.bus.bus import Bus
from kilonova.conductor.service import Conductor
from kilonova.core import clock
from kilonova.core.context import preserved
from kilonova.db.queries import journal as sql
from kilonova.sql.engine import Connection, Database
from kilonova.workflows.engine import Engine, Settings
from kilonova.workflows.step import Alternates, Done, Recorder, SilentRecorder, Step, Workflow
from kilonova.workflows.timers import Heap, Timer

When = Literal["before", "after", "effect"]


class Crash(BaseException):
    """The process is killed here."""


@dataclass
class Faults:
    """Counts commits and effects; raises Crash at the chosen one. `fired` says whether it did."""

    at: int = 0
    when: When = "before"
    commits: int = 0
    effects: int = 0
    armed: bool = False
    fired: bool = False

    def effect(self, _what: str) -> None:
        """Something outside has just been done."""
        self.effects += 1
        if self.when == "effect" and self.effects == self.at:
            self.fire()

    def fire(self) -> None:
        if self.armed and not self.fired:
            self.fired = True
            raise Crash()


class FaultyDatabase:
    """A Database whose n-th commit, counted over all of a stage's databases, is a point to be killed at."""

    def __init__(self, database: Database, faults: Faults) -> None:
        self._database, self._faults = database, faults
        self.dialect, self.url = database.dialect, database.url
        self.read, self.now, self.dispose = database.read, database.now, database.dispose

    @contextmanager
    def write(self) -> Iterator[Connection]:
        with self._database.write() as connection:
            yield connection
            self._faults.commits += 1
            mine = self._faults.commits == self._faults.at
            if mine and self._faults.when == "before":
                self._faults.fire()
        if mine and self._faults.when == "after":
            self._faults.fire()


class ManualPool:
    """An Executor that runs when told, in the order of submission."""

    def __init__(self) -> None:
        self.tasks: deque[tuple[Callable[..., object], tuple[Any, ...]]] = deque()

    def submit(self, function: Callable[..., object], *arguments: Any) -> None:
        self.tasks.append((function, arguments))

    def close(self, seconds: float = 5.0) -> None:
        self.tasks.clear()

    def run_one(self) -> bool:
        if not self.tasks:
            return False
        function, arguments = self.tasks.popleft()
        with preserved():
            function(*arguments)
        return True

    def run(self, most: int = 100_000) -> bool:
        """Run until there is nothing; whether there was anything."""
        count = 0
        while self.run_one():
            count += 1
            assert count < most, "tasks without end"
        return count > 0


class JumpingClock:
    """Time moves only when told."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._start = datetime(2026, 1, 1)

    def utcnow(self) -> datetime:
        return self._start + timedelta(seconds=self.seconds)

    def monotonic(self) -> float:
        return self.seconds

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds


class ManualTimers:
    """Timers that fire when the clock is made to jump."""

    def __init__(self, jumping: JumpingClock) -> None:
        self._heap, self._clock = Heap(), jumping

    def after(self, seconds: float, function: Callable[..., object], *arguments: Any) -> Timer:
        return self._heap.push(self._clock.monotonic() + seconds, function, arguments)[0]

    def close(self) -> None:
        pass

    def fire(self) -> None:
        """Do what is due by now."""
        for function, arguments in self._heap.pop(self._clock.monotonic()):
            function(*arguments)

    def jump(self) -> bool:
        """Go to the next deadline and do what is due; False when there is none."""
        while (due := self._heap.next_due()) is not None:
            self._clock.seconds = max(self._clock.seconds, due)
            ripe = self._heap.pop(self._clock.monotonic())
            for function, arguments in ripe:
                function(*arguments)
            if ripe:
                return True
        return False


@dataclass
class Stage:
    """One world to be killed in. pump: let the outside world act once, when nothing else can go on; False if idle."""

    world: Any
    workflows: Sequence[Workflow]
    begin: Callable[[], None]
    check: Callable[[], None]
    pool: ManualPool
    bus: Bus
    pump: Callable[[Engine], bool] = lambda _engine: False
    recorder: Recorder = field(default_factory=SilentRecorder)
    restarted: Callable[[], None] = lambda: None


Make = Callable[[Faults, Path], Stage]
Change = Callable[[Step], Step]


class Driver:
    """Runs a stage's conductors one after another until nothing is left to do."""

    def __init__(self, stage: Stage, jumping: JumpingClock, change: Change | None = None) -> None:
        self.stage, self._clock, self._number = stage, jumping, 0
        self._workflows = [_changed(workflow, change) for workflow in stage.workflows] if change else stage.workflows
        self._stop: Callable[[], None] = lambda: None
        self.start("conductor-0")

    def start(self, me: str) -> None:
        """A new conductor process; the one before is dead, with all it had in memory and on its way."""
        self._stop()
        self.stage.pool.tasks.clear()
        self.timers = ManualTimers(self._clock)
        self.engine = Engine(
            self.stage.world, self._workflows, self.stage.recorder, me=me, pool=self.stage.pool, timers=self.timers,
            settings=Settings(),
        )  # fmt: skip
        handlers = Conductor.handlers(_Holder(self.engine))  # type: ignore[arg-type]
        self._stop = self.stage.bus.serve("conductor", handlers, address=me)

    def crash(self, *, same_id: bool) -> None:
        """Kill the conductor, and start another: with its id, or with another one after its lease is over."""
        if not same_id:
            self._number += 1
            for name in self.stage.world.databases():
                expire_leases(*self.stage.world.database(name))
        self.start(f"conductor-{self._number}")
        self.stage.restarted()

    def run(self, *, same_id: bool = True, most: int = 5000) -> None:
        """To the end, through one crash at most (a Faults fires once)."""
        recovered = False
        for _ in range(most):
            try:
                if not recovered:
                    self.engine.recover()
                    recovered = True
                if self._once():
                    return
            except Crash:
                recovered = False
                self.crash(same_id=same_id)
        raise AssertionError("the workflows do not come to an end")

    def _once(self) -> bool:
        """One round; whether everything is over."""
        if self.stage.pool.run() or self.engine.poll() or self.stage.pump(self.engine):
            return False
        if not self.engine.live and not live_rows(self.stage.world):
            return True
        assert self.timers.jump(), f"stuck with {live_rows(self.stage.world)}"
        self.engine.renew()  # as housekeeping would have meanwhile
        return False


class _Holder:
    """What Conductor.handlers needs of a conductor."""

    _told = None

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._wake_workflow = lambda ctx, request: Conductor._wake_workflow(self, ctx, request)  # type: ignore[arg-type]
        self._deliver_events = lambda ctx, r: Conductor._deliver_events(self, ctx, r)  # type: ignore[arg-type]
        self._verb_report = lambda ctx, r: Conductor._verb_report(self, ctx, r)  # type: ignore[arg-type]


def live_rows(world: Any) -> list[tuple[str, str]]:
    """(id, state) of everything not over, held rows too."""
    found = []
    for name in world.databases():
        database, tables = world.database(name)
        with database.read() as connection:
            w = tables.workflows
            rows = connection.execute(w.select().where(w.c.state.in_((*sql.LIVE, sql.HELD))))
            found += [(row.id, row.state) for row in rows]
    return found


def expire_leases(database: Any, tables: sql.JournalTables) -> None:
    """As if so much time had passed that every conductor is thought dead. Not a point to be killed at."""
    real = getattr(database, "_database", database)
    with real.write() as connection:
        connection.execute(tables.conductors.update().values(lease_until=0))


@contextmanager
def jumping_clock() -> Iterator[JumpingClock]:
    """Install a clock that jumps."""
    jumping = JumpingClock()
    before = clock.install(jumping)
    try:
        yield jumping
    finally:
        clock.install(before)


def drive(make: Make, folder: Path, faults: Faults, *, same_id: bool = True, change: Change | None = None) -> Stage:
    """Make a stage, begin, run to the end through the fault, check."""
    folder.mkdir(parents=True)
    with jumping_clock() as jumping:
        stage = make(faults, folder)
        driver = Driver(stage, jumping, change)
        stage.begin()
        faults.commits = faults.effects = 0
        faults.armed = True
        driver.run(same_id=same_id)
        stage.check()
        for name in stage.world.databases():
            stage.world.database(name)[0].dispose()
    return stage


def assert_survives_crashes(
    make: Make, folder: Path, *, fail: str | None = None, same_id: Sequence[bool] = (True, False)
) -> int:
    """Kill at every point in turn; answers how many points there were."""
    change = failing(fail, after=True) if fail else None
    plain = Faults()
    drive(make, folder / "plain", plain, change=change)
    points: list[tuple[When, int]] = []
    for when in ("before", "after"):
        points += [(when, at) for at in range(1, plain.commits + 1)]  # type: ignore[arg-type]
    points += [("effect", at) for at in range(1, plain.effects + 1)]
    for when, at in points:
        for same in same_id:
            faults = Faults(at, when)
            where = f"killed {when} {'effect' if when == 'effect' else 'commit'} {at}, {'same' if same else 'other'} id"
            try:
                drive(make, folder / f"{when}-{at}-{same}", faults, same_id=same, change=change)
            except Exception as error:
                raise AssertionError(f"{where}, failing {fail}: {error!r}") from error
            assert faults.fired, where
    return len(points) * len(same_id)


def assert_survives_failures(make: Make, folder: Path) -> None:
    """Fail at each step in turn, before its work and after it, for good and retriably."""
    for name in step_names(make, folder / "names"):
        for after in (False, True):
            for retriable in (False, True):
                change = failing(name, after=after, retriable=retriable)
                try:
                    drive(make, folder / f"{name}-{after}-{retriable}", Faults(), change=change)
                except Exception as error:
                    raise AssertionError(f"failing {name} {'after' if after else 'before'} its work") from error


def assert_repeats_are_harmless(make: Make, folder: Path) -> None:
    """Every do and every undo twice: in success, and with each step failing."""
    for name in (None, *step_names(make, folder / "names")):
        change = twice if name is None else lambda step, n=name: failing(n, after=True)(twice(step))
        drive(make, folder / f"twice-{name}", Faults(), change=change)


def step_names(make: Make, folder: Path) -> list[str]:
    """All steps of a stage's workflows."""
    folder.mkdir(parents=True)
    stage = make(Faults(), folder)
    return [step.name for workflow in stage.workflows for step in _flat(workflow)]


def failing(name: str | None, *, after: bool, retriable: bool = False) -> Change:
    """Make the step of that name raise, instead of its work or when its work is done."""

    def change(step: Step) -> Step:
        if step.name != name:
            return step

        def do(world: Any, run: Any) -> Any:
            outcome = step.do(world, run) if after else None
            if outcome is None or isinstance(outcome, Done):
                raise Injected(f"injected into {name}", retriable=retriable)
            return outcome

        return dataclasses.replace(step, do=do)

    return change


def twice(step: Step) -> Step:
    """Make do and undo run again when they are done, as after a crash before the commit."""

    def repeat(function: Any) -> Any:
        def again(world: Any, run: Any) -> Any:
            outcome = function(world, run)
            return function(world, run) if outcome is None or isinstance(outcome, Done) else outcome

        return again

    if step.undo.__name__ == "NOTHING":
        return dataclasses.replace(step, do=repeat(step.do))
    return dataclasses.replace(step, do=repeat(step.do), undo=repeat(step.undo))


class Injected(Exception):
    """A failure that the harness makes."""

    def __init__(self, text: str, *, retriable: bool) -> None:
        super().__init__(text)
        self.retriable = retriable


def _flat(workflow: Workflow) -> list[Step]:
    return [s for item in workflow.steps for s in (item.steps if isinstance(item, Alternates) else (item,))]


def _changed(workflow: Workflow, change: Change) -> Workflow:
    steps = tuple(
        dataclasses.replace(item, steps=tuple(change(step) for step in item.steps))
        if isinstance(item, Alternates)
        else change(item)
        for item in workflow.steps
    )
    return dataclasses.replace(workflow, steps=steps)
