"""How the engine runs, cancels, records and closes workflows: one conductor and a clock that jumps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa

from kilonova.core.context import current
from kilonova.core.errors import Conflict, Unavailable
from kilonova.db.queries import journal as sql
from kilonova.workflows.preempt import others_end
from kilonova.workflows.step import NOTHING, Alternates, Done, Failure, Run, Step, Workflow
from tests.unit.workflows.lab import Lab, Seen, said, steps, waiting
from tests.workflows.toy import CELL, SERVER, kept_events

# -- order, records, commits ----------------------------------------------------------------------------------------


def test_a_workflow_costs_one_commit_a_step_and_one_to_begin(lab: Lab) -> None:
    seen: Seen = []
    lab.open(Workflow("w", steps(seen, *"abcdefgh")))
    before = lab.faults.commits + 1  # begin's own
    lab.begin()
    assert seen == list("abcdefgh")
    assert lab.faults.commits - before == 9
    assert lab.states == {"w1": "done"}


def test_finished_and_the_next_started_are_recorded_in_one_transaction(lab: Lab) -> None:
    lab.open(Workflow("w", steps([], "a", "b"), action="create"))
    lab.begin()
    first = lab.recorder.seen[0][0]
    assert lab.recorder.seen == [
        (first, "started", "a"),
        (first + 1, "finished", "a", None),
        (first + 1, "started", "b"),
        (first + 2, "finished", "b", None),
        (first + 2, "over", "w", None),
    ]


def test_a_failure_is_recorded_once_and_undos_are_not(lab: Lab) -> None:
    seen: Seen = []
    lab.open(Workflow("w", steps(seen, "a", "b", b=Conflict("no"))))
    lab.begin()
    assert seen == ["a", "b", "-b", "-a"]
    assert [entry[1:] for entry in lab.recorder.seen] == [
        ("started", "a"), ("finished", "a", None), ("started", "b"), ("finished", "b", "conflict"),
        ("over", "w", "conflict"),
    ]  # fmt: skip
    assert lab.row().state == "undone"
    assert lab.row().error == "b: conflict: no"


def test_a_steps_sql_stands_and_falls_with_its_journal_row(lab: Lab) -> None:
    database, _ = lab.world.database(CELL)
    with database.write() as connection:
        connection.exec_driver_sql("CREATE TABLE facts (word TEXT)")

    def write(word: str, fail: bool = False) -> Callable[[Any], None]:
        def run(connection: Any) -> None:
            connection.execute(sa.text("INSERT INTO facts VALUES (:word)"), {"word": word})
            if fail:
                raise Conflict("lost the race")

        return run

    seen: Seen = []
    lab.open(Workflow("w", (
        Step("a", said(seen, "a", Done(write=write("a"))), undo=said(seen, "-a", Done(write=write("-a")))),
        Step("b", said(seen, "b", Done(write=write("b", fail=True))), undo=NOTHING),
    ), on_failed=lambda world, run, failure: write(f"failed {failure.code}")))  # fmt: skip
    lab.begin()
    with database.read() as connection:
        facts = [row[0] for row in connection.exec_driver_sql("SELECT word FROM facts")]
    assert facts == ["a", "-a", "failed conflict"]
    assert seen == ["a", "b", "-a"]


def test_steps_see_params_outputs_notes_and_the_context_of_the_request(lab: Lab) -> None:
    seen: Seen = []

    def first(_world: Any, run: Run) -> Done:
        run.note("k", [1])
        return Done({"x": 1})

    def second(_world: Any, run: Run) -> None:
        seen.append((run.id, run.subject, run.database, run.params, dict(run.outputs), dict(run.notes), run.step))
        seen.append((run.ctx.user_id, current() is run.ctx, run.epoch, run.attempt))

    lab.open(Workflow("w", (Step("a", first, undo=NOTHING), Step("b", second, undo=NOTHING))))
    lab.begin()
    assert seen == [("w1", SERVER, CELL, {"hosts": ["host-1"]}, {"a": {"x": 1}}, {"k": [1]}, "b"), ("u", True, 1, 1)]
    assert current() is None


def test_the_hook_at_the_end_sees_the_last_outputs_and_its_failure_undoes_everything(lab: Lab) -> None:
    seen: Seen = []

    def on_done(_world: Any, run: Run) -> None:
        seen.append(dict(run.outputs))
        raise Conflict("not ready")

    a = Step("a", lambda world, run: Done({"x": 1}), undo=said(seen, "-a"))
    lab.open(Workflow("w", (a,), on_done=on_done))
    lab.begin()
    assert seen == [{"a": {"x": 1}}, "-a"]
    assert lab.states == {"w1": "undone"}


# -- failing ---------------------------------------------------------------------------------------------------------


def test_beyond_the_last_return_a_failure_goes_forward_to_on_error(lab: Lab) -> None:
    seen: Seen = []
    lab.open(Workflow(
        "w", steps(seen, "a", "b", "c", b=ValueError("x")), last_return="a",
        on_error=lambda world, run, failure: seen.append(f"error {failure.step}"),  # type: ignore[func-returns-value]
        on_failed=lambda world, run, failure: seen.append("failed"),  # type: ignore[func-returns-value]
    ))  # fmt: skip
    lab.begin()
    assert seen == ["a", "b", "error b"]
    assert lab.states == {"w1": "failed"}


def test_alternates_run_again_with_the_attempt_raised_until_none_is_left(lab: Lab) -> None:
    seen: Seen = []

    def inner(_world: Any, run: Run) -> None:
        seen.append(run.attempt)
        raise ValueError("full")

    lab.open(Workflow("w", (
        *steps(seen, "a"),
        Alternates((Step("b", inner, undo=said(seen, "-b")),), lambda world, run: run.attempt < 3),
    )))  # fmt: skip
    lab.begin()
    assert seen == ["a", 1, "-b", 2, "-b", 3, "-b", "-a"]


def test_a_service_that_is_away_is_tried_again_with_back_off_as_often_as_the_row_says(lab: Lab) -> None:
    seen: Seen = []
    lab.open(Workflow("w", (Step("a", said(seen, "a", Unavailable("away")), undo=said(seen, "-a"), tries=3),)))
    lab.begin()
    assert seen == ["a"]
    assert lab.row().state == "parked"
    lab.driver.run()
    assert seen == ["a", "a", "a", "-a"]
    assert lab.clock.seconds == pytest.approx(1 + 2)


def test_an_undo_that_raises_is_repeated_and_then_given_up_and_the_others_still_run(lab: Lab) -> None:
    seen: Seen = []
    lab.open(Workflow("w", (
        Step("a", said(seen, "a"), undo=said(seen, "-a")),
        Step("b", said(seen, "b"), undo=said(seen, "-b", ValueError("stuck")), undo_tries=3),
        Step("c", said(seen, "c", Conflict("no")), undo=NOTHING),
    )))  # fmt: skip
    lab.begin()
    lab.driver.run()
    assert seen == ["a", "b", "c", "-b", "-b", "-b", "-a"]
    assert '["b",1,"abandoned"' in lab.row().log


def test_a_closing_hook_that_raises_is_repeated_until_it_succeeds(lab: Lab) -> None:
    seen: Seen = []

    def failed(_world: Any, _run: Run, _failure: Failure) -> None:
        seen.append("hook")
        if len(seen) < 4:
            raise Unavailable("cell is away")

    lab.open(Workflow("w", (Step("a", said([], "a", Conflict("no")), undo=NOTHING),), on_failed=failed))
    lab.begin()
    assert lab.row().state == "parked"
    lab.driver.run()
    assert seen == ["hook"] * 4
    assert lab.states == {"w1": "undone"}


def test_a_recorder_that_refuses_the_first_step_makes_the_workflow_fail(lab: Lab) -> None:
    seen: Seen = []
    lab.recorder.refuse = {"a"}
    lab.open(Workflow("w", steps(seen, "a"), on_failed=lambda world, run, failure: seen.append(failure.code)))  # type: ignore[func-returns-value]
    lab.begin()
    assert seen == ["-a", "conflict"]
    assert lab.states == {"w1": "undone"}


def test_trouble_with_the_database_is_tried_again_and_is_no_failure_of_the_step(lab: Lab) -> None:
    seen: Seen = []
    trouble = iter([True, True, False])

    def write(_connection: Any) -> None:
        if next(trouble):
            raise sa.exc.OperationalError("x", {}, Exception("connection lost"))

    def do(_world: Any, run: Run) -> Done:
        seen.append(run.epoch)
        return Done(write=write)

    lab.open(Workflow("w", (Step("a", do, undo=said(seen, "-a")),)))
    lab.begin()
    lab.driver.run()
    assert seen == [1, 2, 3]  # so that the step can tell that it may have been called before
    assert lab.states == {"w1": "done"}


def test_trouble_that_does_not_end_fails_the_step(lab: Lab) -> None:
    seen: Seen = []

    def write(_connection: Any) -> None:
        raise sa.exc.OperationalError("x", {}, Exception("no such table"))

    lab.open(Workflow("w", (Step("a", said(seen, "a", Done(write=write)), undo=said(seen, "-a")),)))
    lab.begin()
    lab.driver.run()
    assert seen == ["a"] * 6 + ["-a"]
    assert lab.states == {"w1": "undone"}


# -- cancelling, giving way ------------------------------------------------------------------------------------------


def test_cancelling_undoes_a_parked_workflow_at_once(lab: Lab) -> None:
    seen: Seen = []
    lab.open(Workflow("w", (*steps(seen, "a"), Step("b", waiting([], ("e", "")), undo=said(seen, "-b")))))
    lab.begin()
    lab.engine.cancel(CELL, SERVER, "w1")
    lab.pool.run()
    assert seen == ["a", "-b", "-a"]
    assert lab.row().error == "b: cancelled: The operation was cancelled."
    assert kept_events(lab.world) == 0


def test_cancelling_goes_to_one_workflow_of_the_subject(lab: Lab) -> None:
    workflow = Workflow("w", (Step("b", waiting([], ("e", "")), undo=NOTHING),))
    lab.open(workflow)
    lab.begin()
    lab.begin(id_="w2")
    lab.engine.cancel(CELL, SERVER, "w2")
    lab.pool.run()
    assert lab.states == {"w1": "parked", "w2": "undone"}


def test_cancelling_beyond_the_last_return_does_nothing(lab: Lab) -> None:
    lab.open(Workflow("w", (*steps([], "a"), Step("b", waiting([], ("e", "")), undo=NOTHING)), last_return="a"))
    lab.begin()
    lab.engine.cancel(CELL, SERVER, "w1")
    lab.pool.run()
    assert lab.states == {"w1": "parked"}
    lab.event("e")
    assert lab.states == {"w1": "done"}


def test_a_later_workflow_makes_an_earlier_one_give_way_and_waits_for_its_end(lab: Lab) -> None:
    seen: Seen = []
    undo_waits = waiting([], ("let go", ""))
    lab.open(
        Workflow("build", (*steps(seen, "a"), Step("b", waiting([], ("e", "")), undo=undo_waits))),
        Workflow("delete", (Step("others", others_end(cancel={"build"}), undo=NOTHING), *steps(seen, "gone"))),
    )
    lab.begin("build", "w1")
    lab.clock.seconds += 1
    lab.begin("delete", "w2")
    assert (seen, lab.states) == (["a"], {"w1": "parked", "w2": "parked"})
    lab.event("let go")
    assert seen == ["a", "-a", "gone"]
    assert lab.states == {"w1": "undone", "w2": "done"}
    assert kept_events(lab.world) == 0


def test_giving_way_never_waits_for_a_younger_one_and_not_for_ever(lab: Lab) -> None:
    seen: Seen = []
    lab.open(
        Workflow("build", (Step("b", waiting([], ("e", ""), seconds=1000), undo=NOTHING),)),
        Workflow("delete", (
            Step("others", others_end(wait_for={"build", "delete"}, seconds=100), undo=NOTHING),
            Step("hold", waiting([], ("go", ""), seconds=1000), undo=NOTHING),
        ), on_failed=lambda world, run, failure: seen.append(failure.code)),  # type: ignore[func-returns-value]
    )  # fmt: skip
    lab.begin("delete", "w1")
    lab.clock.seconds += 1
    lab.begin("build", "w2")
    assert lab.row("w1").step == 1  # nothing older was there
    lab.clock.seconds += 1
    lab.begin("delete", "w3")
    for _ in range(14):
        lab.driver.timers.jump()
        lab.pool.run()
    assert seen == ["in_the_way"]


# -- beginning, keeping house ----------------------------------------------------------------------------------------


def test_a_held_workflow_waits_for_its_release_and_can_be_discarded(lab: Lab) -> None:
    seen: Seen = []
    lab.open(Workflow("w", steps(seen, "a")))
    database, tables = lab.world.database(CELL)
    new = [sql.NewWorkflow(id_, "w", SERVER, {}, {}) for id_ in ("w1", "w2")]
    with database.write() as connection:
        assert all(sql.insert(connection, tables, one, held=True) for one in new)
    lab.engine.poll()
    lab.engine.wake(CELL, "w1")
    lab.pool.run()
    assert seen == []
    with database.write() as connection:
        assert sql.release(connection, tables, "w1")
        assert not sql.release(connection, tables, "w1")
        assert not sql.discard(connection, tables, "w1")
        assert sql.discard(connection, tables, "w2")
    lab.engine.poll()
    lab.pool.run()
    assert seen == ["a"]
    assert lab.states == {"w1": "done"}


def test_inserting_the_same_workflow_again_changes_nothing(lab: Lab) -> None:
    seen: Seen = []
    lab.open(Workflow("w", steps(seen, "a")))
    for _ in range(2):
        lab.engine.submit(CELL, sql.NewWorkflow("w1", "w", SERVER, {}, {}))
        lab.pool.run()
    assert seen == ["a"]


def test_a_workflow_of_another_release_is_left_alone(lab: Lab) -> None:
    lab.open(Workflow("w", steps([], "a")))
    lab.begin("from the future")
    assert (lab.states, lab.engine.live) == ({"w1": "running"}, 0)
    assert lab.engine.poll() == 0


def test_waking_what_is_over_or_never_was_does_nothing(lab: Lab) -> None:
    lab.open(Workflow("w", steps([], "a")))
    lab.begin()
    lab.engine.wake(CELL, "w1")
    lab.engine.wake(CELL, "no such")
    lab.pool.run()
    assert lab.engine.live == 0
    with pytest.raises(KeyError):
        lab.engine.wake("no such database", "w1")


def test_rows_of_ended_workflows_are_deleted_after_their_time(lab: Lab) -> None:
    lab.open(Workflow("w", steps([], "a")), Workflow("p", (Step("a", waiting([], ("e", "")), undo=NOTHING),)))
    lab.begin()
    lab.begin("p", "w2")
    assert lab.engine.prune() == 0
    lab.clock.seconds += 3601
    assert lab.engine.prune() == 1
    assert lab.states == {"w2": "parked"}


def test_a_wake_up_that_was_lost_is_found_by_sweeping(lab: Lab) -> None:
    lab.open(Workflow("p", (Step("a", waiting([], ("e", "")), undo=NOTHING),)))
    lab.begin("p")
    database, tables = lab.world.database(CELL)
    with database.write() as connection:
        sql.add_event(connection, tables, SERVER, "e", "", {})
    lab.engine.sweep()
    lab.pool.run()
    assert lab.states == {"w1": "done"}
