"""The engine with real threads, timers and housekeeping."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kilonova.bus.calls import Event, Events, Wake, deliver_events, wake_workflow
from kilonova.bus.local import LocalBus
from kilonova.conductor.service import Conductor
from kilonova.db.queries import journal as sql
from kilonova.sql.engine import Database
from kilonova.workflows.engine import Engine, Settings
from kilonova.workflows.step import NOTHING, AgentAddress, Done, Parked, Run, SilentRecorder, Step, Workflow

PARKED = 10_000


class World:
    def __init__(self, folder: Path) -> None:
        self.bus = LocalBus()
        self.cell = Database(f"sqlite:///{folder}/cell.db", pool_size=8)
        with self.cell.write() as connection:
            for table in sql.CELL:
                table.create(connection)

    def databases(self) -> tuple[str, ...]:
        return ("cell",)

    def database(self, name: str) -> tuple[Database, sql.JournalTables]:
        return {"cell": (self.cell, sql.CELL)}[name]

    def agent_of(self, host: str) -> AgentAddress | None:
        return None

    def insert(self, count: int, name: str = "w") -> None:
        with self.cell.write() as connection:
            for number in range(count):
                sql.insert(connection, sql.CELL, sql.NewWorkflow(f"w{number}", name, f"s{number}", {}, {}))

    def count(self, state: str) -> int:
        with self.cell.read() as connection:
            text = f"SELECT count(*) FROM workflows WHERE state = '{state}'"
            return int(connection.exec_driver_sql(text).scalar() or 0)


def until(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come to that"
        time.sleep(0.01)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.bus.close()
    made.cell.dispose()


def wait_for(name: str, seconds: float = 600) -> Callable[[Any, Run], Any]:
    return lambda world, run: Done() if run.expired or run.event(name) else Parked(((name, ""),), seconds)


def test_ten_thousand_parked_workflows_hold_no_thread_connection_or_transaction(world: World) -> None:
    world.insert(PARKED)
    before = threading.active_count()
    engine = Engine(world, [Workflow("w", (Step("s", wait_for("go"), undo=NOTHING),))], SilentRecorder(), me="a",
                    settings=Settings(kept_runs=200))  # fmt: skip
    for number in range(PARKED):
        engine.wake("cell", f"w{number}")
    until(lambda: world.count("parked") == PARKED)
    until(lambda: all(not entry.busy for entry in engine._live.values()))
    assert threading.active_count() - before <= 9  # eight workers and one for all deadlines
    assert world.cell._reader.pool.checkedout() == 0  # type: ignore[attr-defined]
    assert world.cell._writer.pool.checkedout() == 0  # type: ignore[attr-defined]
    assert sum(entry.run is not None for entry in engine._live.values()) <= 200
    for start in range(0, PARKED, 1000):
        engine.deliver([Event("cell", f"s{number}", "go") for number in range(start, start + 1000)])
    until(lambda: world.count("done") == PARKED)
    until(lambda: engine.live == 0)
    with world.cell.read() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM workflow_events").scalar() == 0
    engine.close()


def test_one_thread_at_most_has_a_workflow_and_no_wake_up_is_lost(world: World) -> None:
    inside: dict[str, int] = {}
    worst, calls = [0], [0]

    def do(_world: Any, run: Run) -> Any:
        inside[run.id] = inside.get(run.id, 0) + 1
        worst[0] = max(worst[0], inside[run.id])
        calls[0] += 1
        found = len(run.events)
        time.sleep(0.0005)
        inside[run.id] -= 1
        return Done() if found >= 20 else Parked(tuple(("e", str(n)) for n in range(20)), 600)

    world.insert(8)
    engine = Engine(world, [Workflow("w", (Step("s", do, undo=NOTHING),))], SilentRecorder(), me="a")

    def send(offset: int) -> None:
        for event in range(offset, 20, 2):
            for number in range(8):
                engine.deliver([Event("cell", f"s{number}", "e", str(event))])

    for number in range(8):
        engine.wake("cell", f"w{number}")
    senders = [threading.Thread(target=send, args=(offset,)) for offset in (0, 1)]
    for thread in senders:
        thread.start()
    for thread in senders:
        thread.join()
    until(lambda: world.count("done") == 8)
    assert worst == [1]
    assert calls[0] > 8
    engine.close()


def test_a_conductor_serves_its_rows_keeps_its_lease_and_finds_what_nobody_told_it(world: World) -> None:
    settings = Settings(lease_s=0.4, renew_s=0.1, poll_s=0.05, sweep_s=60, prune_s=60)
    conductor = Conductor(world, [Workflow("w", (Step("s", wait_for("go"), undo=NOTHING),))], SilentRecorder(),
                          me="a", settings=settings)  # fmt: skip
    conductor.start(world.bus)
    world.insert(2)
    world.bus.cast(wake_workflow, Wake("cell", "w0"))
    until(lambda: world.count("parked") == 2, 5)  # one told, one found
    time.sleep(0.5)  # longer than the lease
    other = Engine(world, [], SilentRecorder(), me="b")
    assert other.poll() == 0
    world.bus.cast(deliver_events, Events((Event("cell", "s0", "go"), Event("cell", "s1", "go"))))
    until(lambda: world.count("done") == 2, 5)
    conductor.close()
    other.close()


def test_deadlines_fire_by_themselves(world: World) -> None:
    world.insert(1)
    engine = Engine(world, [Workflow("w", (Step("s", wait_for("never", 0.05), undo=NOTHING),))], SilentRecorder(),
                    me="a")  # fmt: skip
    engine.wake("cell", "w0")
    until(lambda: world.count("done") == 1, 5)
    engine.close()


def test_closing_lets_the_running_step_end_and_the_next_process_goes_on(world: World) -> None:
    began, go, seen = threading.Event(), threading.Event(), []

    def slow(_world: Any, _run: Run) -> None:
        began.set()
        go.wait(5)
        seen.append("slow")

    steps = (Step("s", slow, undo=NOTHING), Step("t", lambda w, r: seen.append("t"), undo=NOTHING))  # type: ignore[func-returns-value]
    engine = Engine(world, [Workflow("w", steps)], SilentRecorder(), me="a")
    world.insert(1)
    engine.wake("cell", "w0")
    assert began.wait(5)
    closing = threading.Thread(target=engine.close)
    closing.start()
    until(lambda: engine._stopped, 5)
    go.set()
    closing.join(5)
    assert seen == ["slow"]
    again = Engine(world, [Workflow("w", steps)], SilentRecorder(), me="a")
    again.recover()
    until(lambda: world.count("done") == 1, 5)
    assert seen == ["slow", "t"]
    again.close()
