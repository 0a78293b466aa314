"""Several conductors on one journal: leases, adoption, fencing, passing on what came to the wrong one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kilonova.bus import calls
from kilonova.db.queries import journal as sql
from kilonova.sql.engine import Database
from kilonova.workflows.engine import Engine
from kilonova.workflows.step import NOTHING, Done, Parked, Run, SilentRecorder, Step, Workflow
from tests.unit.workflows.test_engine import Seen, said, steps, waiting
from tests.workflows.harness import (
    Faults,
    JumpingClock,
    ManualPool,
    ManualTimers,
    _Holder,
    expire_leases,
    jumping_clock,
)
from tests.workflows.toy import CELL, SERVER, begin, kept_events, make_world, rows, spawn


class Two:
    """Two conductors, a and b, each with a pool of its own; the bus has the world's."""

    def __init__(self, cell: Database, jumping: JumpingClock) -> None:
        self.world, self.pool = make_world(cell, Faults())
        self.clock = jumping
        self.engines: dict[str, Engine] = {}
        self.pools: dict[str, ManualPool] = {}

    def open(self, *workflows: Workflow, names: str = "ab") -> None:
        for me in names:
            self.pools[me] = ManualPool()
            self.engines[me] = Engine(
                self.world, workflows, SilentRecorder(), me=me, pool=self.pools[me], timers=ManualTimers(self.clock)
            )
            self.world.bus.serve("conductor", _handlers(self.engines[me]), address=me)
            self.engines[me].recover()

    def begin(self, me: str, id_: str = "w1", name: str = "w") -> None:
        begin(self.world, ["host-1"], id_=id_, name=name)
        self.engines[me].wake(CELL, id_)

    def run(self) -> None:
        """Everything everywhere, to rest."""
        while sum(pool.run() for pool in (self.pool, *self.pools.values())):
            pass

    def row(self, id_: str = "w1") -> sql.Row:
        database, tables = self.world.database(CELL)
        with database.read() as connection:
            found = sql.Journal(database, tables, "test").load(connection, id_)
        assert found is not None
        return found

    def expire(self) -> None:
        expire_leases(*self.world.database(CELL))


def _handlers(engine: Engine) -> dict[str, Any]:
    from kilonova.conductor.service import Conductor

    return Conductor.handlers(_Holder(engine))  # type: ignore[arg-type]


@pytest.fixture
def two(cell: Database) -> Iterator[Two]:
    with jumping_clock() as jumping:
        made = Two(cell, jumping)
        yield made


def test_a_conductor_stalled_beyond_its_lease_is_refused_and_stops(two: Two) -> None:
    """a is stopped in the middle of a step; b adopts and finishes; a goes on, and may write nothing more."""
    seen: Seen = []

    def slow(_world: Any, run: Run) -> Any:
        seen.append(("slow", run.epoch))
        if run.epoch == 1:  # this is a; while it stands still …
            two.expire()
            assert two.engines["b"].poll() == 1
            two.pools["b"].run()
        return Done({"by": run.epoch}, write=lambda connection: seen.append(("written by", run.epoch)))

    two.open(Workflow("w", (Step("s", slow, undo=said(seen, "-s")), *steps(seen, "t"))))
    two.begin("a")
    two.pools["a"].run()
    assert seen == [("slow", 1), ("slow", 2), ("written by", 2), "t"]
    assert rows(two.world) == {"w1": "done"}
    assert '"by":2' in two.row().log
    assert two.engines["a"].live == 0


def test_a_note_of_a_stalled_conductor_is_refused_before_it_does_something_outside(two: Two) -> None:
    seen: Seen = []

    def create(_world: Any, run: Run) -> Any:
        if run.epoch == 1:
            two.expire()
            two.engines["b"].poll()
            two.pools["b"].run()
        run.note("key", run.epoch)
        seen.append(("created", run.epoch))

    two.open(Workflow("w", (Step("s", create, undo=said(seen, "-s")),)))
    two.begin("a")
    two.pools["a"].run()
    assert seen == [("created", 2)]
    assert rows(two.world) == {"w1": "done"}


def test_what_waits_for_a_thread_of_a_stalled_conductor_is_claimed_anew_before_its_step_runs(two: Two) -> None:
    """Found by the interleavings: the first of two noticed the lapse and renewed, the second went on unasked."""
    seen: Seen = []

    def do(_world: Any, run: Run) -> Any:
        seen.append((run.id, run.epoch))
        return Done() if run.epoch > 1 else Parked((), 20)

    two.open(Workflow("w", (Step("s", do, undo=NOTHING),)))
    for id_ in ("w1", "w2"):
        two.begin("a", id_)
    two.run()
    for id_ in ("w1", "w2"):
        two.engines["a"].wake(CELL, id_)
    two.clock.seconds += 16  # both are queued when a is stopped; b adopts and ends both
    two.expire()
    two.engines["b"].renew()
    two.engines["b"].poll()
    two.pools["b"].run()
    assert rows(two.world) == {"w1": "done", "w2": "done"}
    two.run()
    assert seen[:2] == [("w1", 1), ("w2", 1)]
    assert sorted(seen[2:]) == [("w1", 2), ("w2", 2)]
    assert two.engines["a"].live == 0


def test_a_stalled_conductor_that_renews_finds_out_and_drops_what_others_have(two: Two) -> None:
    seen: Seen = []
    two.open(Workflow("w", (Step("s", waiting(seen, ("e", "")), undo=NOTHING),)))
    two.begin("a")
    two.run()
    two.expire()
    two.engines["b"].renew()
    two.engines["b"].poll()
    two.run()
    assert (two.row().owner, two.row().epoch) == ("b", 2)
    two.engines["a"].renew()
    two.run()
    assert (two.engines["a"].live, two.engines["b"].live) == (0, 1)
    assert two.row().owner == "b"


def test_work_of_a_living_conductor_is_not_adopted(two: Two) -> None:
    two.open(Workflow("w", (Step("s", waiting([], ("e", "")), undo=NOTHING),)))
    two.begin("a")
    two.run()
    assert two.engines["b"].poll() == 0
    two.engines["b"].wake(CELL, "w1")
    two.run()
    assert (two.row().owner, two.row().epoch, two.engines["b"].live) == ("a", 1, 0)


def test_a_workflow_nobody_was_told_of_is_found_and_run_by_one_conductor(two: Two) -> None:
    seen: Seen = []
    two.open(Workflow("w", steps(seen, "s")))
    begin(two.world, ["host-1"], name="w")
    assert two.engines["a"].poll() == 1
    assert two.engines["b"].poll() == 1
    two.run()
    assert seen == ["s"]
    assert rows(two.world) == {"w1": "done"}


def test_a_restarted_conductor_takes_its_own_work_back_at_once(two: Two) -> None:
    seen: Seen = []
    workflow = Workflow("w", (Step("s", waiting(seen, ("e", "")), undo=NOTHING),))
    two.open(workflow, names="a")
    two.begin("a")
    two.run()
    again = Engine(two.world, [workflow], SilentRecorder(), me="a", pool=two.pool, timers=ManualTimers(two.clock))
    again.recover()
    two.run()
    assert (again.live, two.row().owner, two.row().epoch) == (1, "a", 2)
    two.engines["a"].wake(CELL, "w1")  # the process before, were it still there
    two.run()
    assert two.engines["a"].live == 0


def test_a_conductor_that_stops_leaves_its_work_to_others_at_once(two: Two) -> None:
    two.open(Workflow("w", (Step("s", waiting([], ("e", "")), undo=NOTHING),)))
    two.begin("a")
    two.run()
    two.engines["a"].close()
    assert two.engines["b"].poll() == 1


def test_an_event_that_came_to_the_wrong_conductor_reaches_the_right_one(two: Two) -> None:
    two.open(Workflow("w", (Step("s", waiting([], ("e", "")), undo=NOTHING),)))
    two.begin("a")
    two.run()
    two.engines["b"].deliver([calls.Event(CELL, SERVER, "e")])
    two.run()
    assert rows(two.world) == {"w1": "done"}
    assert kept_events(two.world) == 0


def test_a_report_that_came_to_the_wrong_conductor_reaches_the_right_one(two: Two) -> None:
    seen: Seen = []
    two.world.agent.deaf = 1
    two.open(Workflow("w", (Step("s", spawn, undo=NOTHING),),
                      on_done=lambda world, run: seen.append(dict(run.outputs))))  # type: ignore[func-returns-value]  # fmt: skip
    two.begin("a")
    two.run()
    ticket = calls.Ticket(CELL, "w1", "s", 1, 1, SERVER, "host-1")
    two.engines["b"].deliver_report(calls.VerbReport(ticket, True, {"x": 1}))
    two.run()
    assert seen == [{"s": {"x": 1}}]
    two.engines["b"].deliver_report(calls.VerbReport(ticket, True, {"x": 1}))
    two.run()
    assert kept_events(two.world) == 0


def test_the_end_of_a_workflow_is_told_to_the_conductor_of_another_of_the_subject(two: Two) -> None:
    def wait_for_end(_world: Any, run: Run) -> Any:
        return Done() if run.event("ended", "w1") else Parked((("ended", "w1"),), 60)

    two.open(Workflow("w", (Step("s", waiting([], ("e", "")), undo=NOTHING),)),
             Workflow("x", (Step("s", wait_for_end, undo=NOTHING),)))  # fmt: skip
    two.begin("a")
    two.begin("b", "w2", "x")
    two.run()
    two.engines["a"].deliver([calls.Event(CELL, SERVER, "e")])
    two.run()
    assert rows(two.world) == {"w1": "done", "w2": "done"}
    assert kept_events(two.world) == 0


def test_an_adopted_verb_is_sent_anew_with_the_higher_epoch_and_the_agent_refuses_the_older(two: Two) -> None:
    two.world.agent.deaf = 1
    two.open(Workflow("w", (Step("s", spawn, undo=NOTHING),)))
    two.begin("a")
    two.pools["a"].run()
    two.pool.run()
    two.expire()
    two.engines["b"].renew()
    two.engines["b"].poll()
    two.run()
    assert rows(two.world) == {"w1": "done"}
    assert two.world.agent.epochs == {SERVER: 2}
    late = calls.Spawn(calls.Ticket(CELL, "w1", "late", 1, 1, SERVER, "host-2"), calls.GuestSpec(
        SERVER, "n", "n", "p", "u", 1, 64, 1))  # fmt: skip
    two.world.bus.cast(calls.guest_spawn, late, to="agent-1")
    two.run()
    assert two.world.outside.guests == {SERVER: "host-1"}
