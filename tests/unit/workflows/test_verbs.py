"""Verbs: sent, sent again when they may be lost, answered once, bounded per agent."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kilonova.bus import calls
from kilonova.core.errors import Unavailable
from kilonova.workflows.desk import FIRST_RESEND_S, VerbDesk
from kilonova.workflows.step import NOTHING, AgentAddress, Failure, Parked, Run, Step, Workflow
from kilonova.workflows.verbs import verb
from tests.unit.workflows.test_engine import Lab
from tests.workflows.harness import JumpingClock, ManualPool, ManualTimers, jumping_clock
from tests.workflows.toy import CELL, SERVER, destroy, guest_of, spawn


class Wire:
    """A bus that remembers casts and may refuse them."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, str]] = []
        self.broken = False

    def cast(self, row: Any, request: Any, *, to: str = "", ctx: Any = None) -> None:
        if self.broken:
            raise Unavailable("no broker")
        self.sent.append((to, request.ticket.id))


class Desk:
    """A desk over agents of one's making."""

    def __init__(self, jumping: JumpingClock, limit: int = 2) -> None:
        self.wire, self.pool, self.timers, self.clock = Wire(), ManualPool(), ManualTimers(jumping), jumping
        self.agents = {"h1": AgentAddress("a1", 1, True), "h2": AgentAddress("a2", 1, True)}
        self.desk = VerbDesk(self.wire, self.agents.get, self.timers, self.pool, limit=limit)  # type: ignore[arg-type]

    def open(self, id_: str, host: str = "h1", epoch: int = 1) -> bool:
        request = calls.Destroy(calls.Ticket(CELL, id_, "s", 1, epoch, SERVER, host))
        return self.desk.open((CELL, id_), host, request.ticket.id, calls.guest_destroy, request, None)  # type: ignore[arg-type]

    def sent(self) -> list[str]:
        found = [f"{to}:{id_.split('/')[0]}" for to, id_ in self.wire.sent]
        self.wire.sent.clear()
        return found

    def jump(self) -> None:
        self.timers.jump()
        self.pool.run()


@pytest.fixture
def made() -> Iterator[Desk]:
    with jumping_clock() as jumping:
        yield Desk(jumping)


def test_a_verb_is_sent_once_however_often_its_step_is_called(made: Desk) -> None:
    assert made.open("w1")
    assert made.open("w1")
    assert made.sent() == ["a1:w1"]


def test_a_host_that_nobody_ever_served_is_said(made: Desk) -> None:
    assert not made.open("w1", "h9")


def test_an_unreported_verb_is_sent_again_with_growing_pauses_up_to_a_minute(made: Desk) -> None:
    made.open("w1")
    moments = []
    for _ in range(5):
        made.jump()
        moments.append(made.clock.seconds)
    assert [b - a for a, b in zip([0.0, *moments], moments, strict=False)] == [FIRST_RESEND_S, 30, 60, 60, 60]
    assert made.sent() == ["a1:w1"] * 6


def test_a_reported_verb_is_not_sent_again(made: Desk) -> None:
    made.open("w1")
    made.desk.close("w1/s/1")
    made.sent()
    made.jump()
    made.desk.agent_seen("a1", 2, [])
    assert made.sent() == []


def test_a_restarted_agent_gets_its_open_verbs_at_once_and_others_do_not(made: Desk) -> None:
    made.open("w1")
    made.open("w2", "h2")
    made.sent()
    made.desk.agent_seen("a1", 1, ["w1/s/1"])
    assert made.sent() == []
    made.desk.agent_seen("a1", 2, [])
    assert made.sent() == ["a1:w1"]
    made.desk.agent_seen("a1", 2, ["w1/s/1"])
    assert made.sent() == []


def test_a_verb_omitted_by_two_beats_in_a_row_is_sent_again(made: Desk) -> None:
    made.open("w1")
    made.sent()
    for in_hand in ([], ["w1/s/1"], []):
        made.desk.agent_seen("a1", 1, in_hand)
        assert made.sent() == []
    made.desk.agent_seen("a1", 1, [])
    assert made.sent() == ["a1:w1"]
    made.desk.agent_seen("a1", 1, [])
    assert made.sent() == []


def test_no_more_verbs_are_open_at_an_agent_than_the_bound_and_the_rest_go_in_order(made: Desk) -> None:
    for number in range(1, 6):
        made.open(f"w{number}")
    made.open("w9", "h2")
    assert made.sent() == ["a1:w1", "a1:w2", "a2:w9"]
    assert made.desk.open_at("a1") == (2, 3)
    made.desk.forget((CELL, "w3"))  # gives up its place in the queue
    made.desk.close("w2/s/1")
    assert made.sent() == ["a1:w4"]
    made.desk.close("w1/s/1")
    assert made.sent() == ["a1:w5"]
    for number in (4, 5):
        made.desk.close(f"w{number}/s/1")
    assert made.desk.open_at("a1") == (0, 0)
    assert made.sent() == []


def test_a_broker_that_is_away_is_no_error_of_the_step(made: Desk) -> None:
    made.wire.broken = True
    assert made.open("w1")
    made.wire.broken = False
    made.jump()
    assert made.sent() == ["a1:w1"]


def test_a_host_that_moved_to_another_agent_process_is_asked_there(made: Desk) -> None:
    made.open("w1")
    made.sent()
    made.agents["h1"] = AgentAddress("a2", 5, True)
    made.jump()
    assert made.sent() == ["a2:w1"]
    assert (made.desk.open_at("a1"), made.desk.open_at("a2")) == ((0, 0), (1, 0))


def test_an_adopted_workflow_sends_its_verb_with_the_new_epoch(made: Desk) -> None:
    made.open("w1", epoch=1)
    made.open("w1", epoch=2)
    assert made.sent() == ["a1:w1"] * 2
    assert made.desk.open_at("a1") == (1, 0)


# -- as steps ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    with jumping_clock() as jumping:
        made = Lab(tmp_path, jumping)
        yield made
        made.world.database(CELL)[0].dispose()


def one(do: Any, seen: list[Any], undo: Any = NOTHING) -> Workflow:
    return Workflow("w", (Step("s", do, undo=undo),),
                    on_failed=lambda world, run, failure: seen.append(failure),
                    on_done=lambda world, run: seen.append(dict(run.outputs)))  # type: ignore[func-returns-value]  # fmt: skip


def test_the_report_becomes_the_steps_outputs(lab: Lab) -> None:
    seen: list[Any] = []
    lab.open(one(spawn, seen))
    lab.begin()
    assert seen == [{"s": {"host": "host-1"}}]
    assert lab.world.agent.received == ["w1/s/1"]
    assert lab.engine.desk.open_at("agent-1") == (0, 0)


@pytest.mark.parametrize("retriable", [True, False])
def test_a_failed_report_fails_the_step_with_the_agents_code(lab: Lab, retriable: bool) -> None:
    seen: list[Failure] = []
    lab.world.agent.deaf = 1
    lab.open(one(spawn, seen))
    lab.begin()
    ticket = calls.Ticket(CELL, "w1", "s", 1, 1, SERVER, "host-1")
    lab.engine.deliver_report(calls.VerbReport(ticket, False, {}, "no_disk", "The disk is full.", retriable))
    lab.pool.run()
    assert [(f.code, f.text, f.retriable) for f in seen] == [("no_disk", "The disk is full.", retriable)]


def test_without_a_report_the_step_fails_when_its_time_is_over_counted_from_its_start(lab: Lab) -> None:
    seen: list[Failure] = []
    lab.world.agent.deaf = 1000
    lab.open(one(spawn, seen))
    lab.begin()
    lab.engine.wake(CELL, "w1")  # a needless call does not begin the time anew
    lab.driver.run()
    assert [(f.code, f.retriable) for f in seen] == [("verb_timeout", True)]
    assert 600 <= lab.clock.seconds < 601


def test_a_host_without_an_agent_fails_the_step_and_no_host_means_nothing_to_do(lab: Lab) -> None:
    seen: list[Any] = []
    where: list[str | None] = ["nowhere", None]
    lab.open(one(verb(calls.guest_spawn, build=guest_of, host=lambda run: where[0]), seen))
    lab.begin()
    assert [f.code for f in seen] == ["no_agent"]
    del where[0]
    lab.begin(id_="w2")
    assert seen[1:] == [{"s": {}}]


def test_an_undo_is_another_verb_and_its_repetition_yet_another(lab: Lab) -> None:
    tickets: list[str] = []

    def build(world: Any, run: Run, ticket: calls.Ticket) -> calls.Destroy:
        tickets.append(ticket.id)
        return calls.Destroy(ticket)

    def fail(_world: Any, run: Run) -> Any:
        if not run.event("fail"):
            return Parked((("fail", ""),), 60)
        raise ZeroDivisionError

    undo = verb(calls.guest_destroy, build=build, host=lambda run: "host-1", seconds=50)
    workflow = Workflow("w", (Step("s", spawn, undo=undo), Step("t", fail, undo=NOTHING)))
    lab.open(workflow)
    lab.begin()
    lab.world.agent.deaf = 3  # sent at 0, 15 and 45 seconds, over at 50
    lab.event("fail")
    lab.driver.run()
    assert tickets == ["w1/s.undo/1", "w1/s.undo.1/1"]
    assert lab.states == {"w1": "undone"}
    assert lab.world.outside.guests == {}


def test_a_report_of_a_step_that_is_over_changes_nothing(lab: Lab) -> None:
    seen: list[Any] = []
    workflow = Workflow("w", (Step("s", spawn, undo=destroy), Step("t", lambda w, r: spawn(w, r), undo=destroy)))
    lab.open(workflow)
    lab.world.agent.deaf = 0
    lab.begin()
    assert lab.states == {"w1": "done"}
    lab.engine.deliver_report(calls.VerbReport(calls.Ticket(CELL, "w1", "s", 1, 1, SERVER, "host-1"), True))
    lab.pool.run()
    assert (lab.states, seen, lab.engine.live) == ({"w1": "done"}, [], 0)


def test_only_rows_of_verbs_make_verbs() -> None:
    with pytest.raises(ValueError, match="console_output"):
        verb(calls.console_output, build=lambda w, r, t: None, host=lambda run: "h")
