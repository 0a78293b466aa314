"""How workflows park and wake: events, deadlines, and what is kept in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kilonova.bus.calls import Event
from kilonova.workflows.step import NOTHING, Alternates, Done, Parked, Run, Step, Workflow
from tests.unit.workflows.lab import Lab, Seen, steps, waiting
from tests.workflows.harness import jumping_clock
from tests.workflows.toy import CELL, SERVER, kept_events

# -- waiting ---------------------------------------------------------------------------------------------------------


def test_an_event_wakes_who_waits_for_it_and_is_then_gone(lab: Lab) -> None:
    seen: Seen = []
    lab.open(Workflow("w", (Step("a", waiting(seen, ("plugged", "p")), undo=NOTHING),
                            Step("b", waiting(seen, ("other", "")), undo=NOTHING))))  # fmt: skip
    lab.begin()
    assert (lab.row().state, seen) == ("parked", [("called", 0)])
    lab.event("plugged", "another port")
    assert seen == [("called", 0)]
    lab.event("plugged", "p")
    assert lab.row().step == 1
    assert kept_events(lab.world) == 1  # the one for another port: until the end
    lab.event("other")
    assert lab.states == {"w1": "done"}
    assert kept_events(lab.world) == 0


def test_an_event_that_comes_before_the_wait_counts(lab: Lab) -> None:
    seen: Seen = []
    lab.open(Workflow("w", (Step("a", waiting(seen, ("first", "")), undo=NOTHING),
                            Step("b", waiting(seen, ("early", "k")), undo=NOTHING))))  # fmt: skip
    lab.begin()
    lab.event("early", "k")
    assert lab.row().step == 0
    lab.event("first")
    assert lab.states == {"w1": "done"}


def test_an_event_that_comes_while_the_step_runs_is_not_missed(lab: Lab) -> None:
    calls: Seen = []

    def do(_world: Any, run: Run) -> Any:
        calls.append(len(run.events))
        if run.event("now"):
            return Done()
        lab.engine.deliver([Event(CELL, SERVER, "now")])
        return Parked((("now", ""),), 60)

    lab.open(Workflow("w", (Step("a", do, undo=NOTHING),)))
    lab.begin()
    assert lab.states == {"w1": "done"}
    assert calls == [0, 1]


def test_all_of_several_events_are_waited_for_without_a_thread(lab: Lab) -> None:
    seen: Seen = []
    lab.open(Workflow("w", (Step("a", waiting(seen, ("e", "1"), ("e", "2")), undo=NOTHING),)))
    lab.begin()
    lab.event("e", "2")
    assert lab.row().state == "parked"
    lab.event("e", "1")
    assert lab.states == {"w1": "done"}
    assert seen == [("called", 0), ("called", 1), ("called", 2)]


def test_a_deadline_wakes_the_step_with_expired_set(lab: Lab) -> None:
    seen: Seen = []
    lab.open(Workflow("w", (Step("a", waiting(seen, ("never", ""), seconds=300), undo=NOTHING),)))
    lab.begin()
    lab.driver.run()
    assert seen == [("called", 0), ("expired", 0)]
    assert lab.clock.seconds == 300


def test_a_deadline_that_passes_while_nobody_lives_is_seen_by_who_adopts(lab: Lab) -> None:
    seen: Seen = []
    workflow = Workflow("w", (Step("a", waiting(seen, ("never", ""), seconds=-1), undo=NOTHING),))
    lab.open(workflow)
    lab.begin()
    lab.driver.crash(same_id=True)
    lab.driver.engine.recover()
    lab.pool.run()
    assert seen[-1] == ("expired", 0)


def test_elapsed_counts_from_the_steps_start_over_all_its_waits(lab: Lab) -> None:
    seen: Seen = []

    def do(_world: Any, run: Run) -> Any:
        seen.append(run.elapsed)
        return Done() if run.elapsed >= 9 else Parked(seconds=3)

    lab.open(Workflow("w", (Step("a", do, undo=NOTHING), Step("b", do, undo=NOTHING))))
    lab.begin()
    lab.driver.run()
    assert seen == [0, 3, 6, 9, 0, 3, 6, 9]


def test_an_event_for_a_subject_without_workflows_is_not_kept(lab: Lab) -> None:
    lab.open(Workflow("w", steps([], "a")))
    lab.event("plugged", "p")
    assert kept_events(lab.world) == 0


def test_events_of_a_failed_attempt_do_not_count_for_the_next(lab: Lab) -> None:
    seen: Seen = []

    def do(_world: Any, run: Run) -> Any:
        seen.append((run.attempt, [event.key for event in run.events]))
        if run.attempt == 1:
            raise ValueError("full")
        return Parked((("plugged", "p"),), 60)

    lab.open(Workflow("w", (
        Step("a", waiting([], ("go", "")), undo=NOTHING),
        Alternates((Step("b", do, undo=NOTHING),), lambda world, run: True),
    )))  # fmt: skip
    lab.begin()
    lab.event("plugged", "p")
    lab.event("go")
    assert seen == [(1, ["p"]), (2, [])]


def test_runs_beyond_what_memory_may_hold_are_read_again(tmp_path: Path) -> None:
    with jumping_clock() as jumping:
        lab = Lab(tmp_path, jumping)
        seen: Seen = []
        lab.open(Workflow("w", (Step("a", waiting(seen, ("e", "")), undo=NOTHING),)))
        object.__setattr__(lab.engine.settings, "kept_runs", 0)
        lab.begin()
        assert [entry.run for entry in lab.engine._live.values()] == [None]
        lab.event("e")
        assert lab.states == {"w1": "done"}
