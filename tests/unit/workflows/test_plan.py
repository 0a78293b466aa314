"""The state machine without time or I/O."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from kilonova.core.errors import Conflict, Unavailable
from kilonova.workflows import plan as machine
from kilonova.workflows.plan import Body
from kilonova.workflows.step import NOTHING, Alternates, Failure, Step, StepFailed, VerbFailed, Workflow


def _do(_world: Any, _run: Any) -> None:
    return None


def _undo(_world: Any, _run: Any) -> None:
    return None


def step(name: str, *, undo: Any = _undo) -> Step:
    return Step(name, _do, undo=undo)


def plan(*names: str, group: Iterable[str] = (), last_return: str | None = None, nothing: Iterable[str] = (),
         retriable: Any = None) -> machine.Plan:  # fmt: skip
    inner = tuple(group)
    made = {name: step(name, undo=NOTHING if name in nothing else _undo) for name in names}
    steps: list[Step | Alternates] = []
    for name in names:
        if name in inner:
            if name == inner[0]:
                steps.append(Alternates(tuple(made[n] for n in inner), lambda world, run: True, retriable))
        else:
            steps.append(made[name])
    return machine.flatten(Workflow("w", tuple(steps), last_return=last_return))


def at(p: machine.Plan, name: str) -> Body:
    """The body with every step before `name` done."""
    body = machine.begin(Body(), 1)
    while p.steps[body.step].name != name:
        body = machine.done(p, body, {"n": p.steps[body.step].name}, 1)
    return body


def undo_all(p: machine.Plan, body: Body) -> list[str]:
    """Names of the steps undone until something else comes."""
    names = []
    while not body.log.end and not machine.choosing(body):
        names.append(p.steps[body.step].name)
        body = machine.undone(p, body, 2)
    return names


def failure(*, retriable: bool = True, code: str = "x") -> Failure:
    return Failure("s", code, "words", retriable=retriable)


def test_each_step_done_starts_the_next_and_the_last_ends_the_workflow() -> None:
    p = plan("a", "b")
    body = machine.begin(Body(), 5)
    assert (body.state, body.step, body.log.since, body.fresh) == ("running", 0, 5, False)
    body = machine.done(p, body, {"x": 1}, 9)
    assert (body.state, body.step, body.log.outputs) == ("running", 1, {"a": {"x": 1}})
    body = machine.done(p, body, {}, 12)
    assert body.state == "done"
    assert body.log.trace == (("a", 1, "done", 4), ("b", 1, "done", 3))


@pytest.mark.parametrize(("failing", "expected"), [("a", ["a"]), ("b", ["b", "a"]), ("c", ["c", "b", "a"])])
def test_every_step_that_started_is_undone_in_reverse_the_failed_one_too(failing: str, expected: list[str]) -> None:
    p = plan("a", "b", "c")
    assert undo_all(p, machine.failed(p, at(p, failing), failure(), 1)) == expected


def test_undos_that_are_nothing_cost_no_turn() -> None:
    p = plan("a", "b", "c", nothing=("a", "c"))
    assert undo_all(p, machine.failed(p, at(p, "c"), failure(), 1)) == ["b"]
    p = plan("a", "b", nothing=("a", "b"))
    assert machine.failed(p, at(p, "b"), failure(), 1).log.end == "undone"


def test_a_retriable_failure_inside_unwinds_the_group_only_and_starts_it_anew() -> None:
    p = plan("a", "b", "c", "d", group=("b", "c"))
    body = machine.failed(p, at(p, "c"), failure(), 1)
    assert undo_all(p, body) == ["c", "b"]
    body = machine.undone(p, machine.undone(p, body, 1), 1)
    assert machine.choosing(body)
    again = machine.again(p, body, 7)
    assert (again.state, p.steps[again.step].name, again.log.attempt) == ("running", "b", 2)
    assert set(again.log.outputs) == {"a"}
    assert (again.log.back, again.log.failure, again.log.since) == (None, None, 7)


def test_with_no_candidate_left_the_steps_before_the_group_are_undone() -> None:
    p = plan("a", "b", "c", group=("b", "c"))
    body = machine.undone(p, machine.failed(p, at(p, "b"), failure(), 1), 1)
    assert machine.choosing(body)
    assert undo_all(p, machine.outward(p, body)) == ["a"]


def test_a_group_at_the_start_with_no_candidate_ends() -> None:
    p = plan("a", "b", group=("a", "b"))
    body = machine.undone(p, machine.failed(p, at(p, "a"), failure(), 1), 1)
    assert machine.outward(p, body).log.end == "undone"


@pytest.mark.parametrize("kwargs", [{"retriable": False}, {"code": machine.CANCELLED}])
def test_what_is_not_retriable_or_is_cancelled_goes_outward_at_once(kwargs: Any) -> None:
    p = plan("a", "b", group=("b",), retriable=None if "retriable" in kwargs else lambda f: True)
    assert undo_all(p, machine.failed(p, at(p, "b"), failure(**kwargs), 1)) == ["b", "a"]


def test_the_groups_own_rule_overrides_the_failures_word() -> None:
    p = plan("a", "b", group=("b",), retriable=lambda f: f.code == "ok")
    assert machine.failed(p, at(p, "b"), failure(retriable=False, code="ok"), 1).log.back == machine.Back(1, True)
    assert machine.failed(p, at(p, "b"), failure(retriable=True, code="no"), 1).log.back == machine.Back(0, False)


def test_a_failure_after_the_group_undoes_the_group_without_asking_for_another() -> None:
    p = plan("a", "b", "c", group=("a", "b"))
    assert undo_all(p, machine.failed(p, at(p, "c"), failure(), 1)) == ["c", "b", "a"]


def test_beyond_the_last_return_nothing_is_undone() -> None:
    p = plan("a", "b", "c", last_return="b")
    assert machine.failed(p, at(p, "b"), failure(), 1).log.back == machine.Back(0)
    body = machine.failed(p, at(p, "c"), failure(), 1)
    assert (body.log.end, body.log.back) == ("failed", None)


def test_notes_outlive_undo_and_attempts_and_none_removes_them() -> None:
    p = plan("a", "b", group=("b",))
    body = machine.noted(at(p, "b"), "k", 1)
    body = machine.again(p, machine.undone(p, machine.failed(p, body, failure(), 1), 1), 1)
    assert body.log.notes == {"k": 1}
    assert machine.noted(body, "k", None).log.notes == {}


def test_a_log_is_stored_and_read_equal() -> None:
    p = plan("a", "b", "c", group=("b",))
    body = machine.parked(machine.retried(machine.noted(at(p, "b"), "k", [1]), 2, 8), (("e", "k"),))
    body = Body(body.state, body.step, machine.failed(p, body, failure(), 3).log)
    assert machine.decode(machine.encode(body.log)) == body.log
    assert machine.decode("{}") == machine.Log()


def test_the_trace_is_bounded() -> None:
    p = plan("a")
    body = machine.begin(Body(), 1)
    for _ in range(machine.TRACE_LENGTH + 50):
        body = machine.again(p, machine.failed(p, body, failure(), 1), 1)
    assert len(body.log.trace) == machine.TRACE_LENGTH


@pytest.mark.parametrize(
    ("error", "code", "status", "retriable"),
    [
        (Conflict("c"), "conflict", 409, False),
        (Unavailable("u"), "unavailable", 503, False),
        (StepFailed("s", retriable=True), "step_failed", 500, True),
        (VerbFailed("no_disk", "v", retriable=True), "no_disk", 500, True),
        (ZeroDivisionError("z"), "internal", 500, True),
    ],
)
def test_failures_tell_their_code_and_whether_another_may_be_tried(
    error: Exception, code: str, status: int, retriable: bool
) -> None:
    found = machine.describe(error, "s")
    assert (found.code, found.status, found.retriable) == (code, status, retriable)


@pytest.mark.parametrize(
    ("steps", "last_return"),
    [
        ((), None),
        ((step("a"), step("a")), None),
        ((step("a"),), "b"),
        ((Alternates((step("a"),), lambda w, r: True), Alternates((step("b"),), lambda w, r: True)), None),
    ],
)
def test_a_list_that_makes_no_sense_is_refused(steps: Any, last_return: str | None) -> None:
    with pytest.raises(ValueError, match="workflow w"):
        Workflow("w", steps, last_return=last_return)
