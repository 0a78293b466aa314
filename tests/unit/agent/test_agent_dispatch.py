from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kilonova.agent.claims import Claims
from kilonova.agent.dispatch import Dispatch
from kilonova.agent.settings import AgentSettings
from kilonova.agent.state import AgentState
from kilonova.agent.verbs import Verb, verbs
from kilonova.bus import calls
from kilonova.bus.calls import ConsoleOutput, Destroy, Disk, Power, VerbReport
from kilonova.bus.local import LocalBus
from kilonova.core import states
from kilonova.virt.simulated import SimulatedDriver, SimulatedSettings
from kilonova.virt.simulated_faults import parse
from tests.unit.agent.fakes import spawn, ticket


class Desk:
    """An agent's dispatch with the conductor's end of the bus."""

    def __init__(self, bus: LocalBus, directory: Path, *faults: str, rows: tuple[Verb, ...] | None = None) -> None:
        directory.mkdir(exist_ok=True)
        self.bus, self.directory = bus, directory
        self.reports: list[VerbReport] = []
        self.moved: list[str] = []
        settings = SimulatedSettings(hosts=2, faults=tuple(parse(text) for text in faults))
        self.driver = SimulatedDriver(str(directory / "guests.db"), settings=settings)
        self.verbs = rows or verbs(Claims(self.driver, AgentSettings()))
        self._withdraw = bus.serve("conductor", {"verb_report": lambda _ctx, report: self.reports.append(report)})
        self.begin()

    def begin(self) -> None:
        """A process that starts on what the one before left."""
        self.dispatch = Dispatch(self.bus, self.driver, AgentState(self.directory), self.moved.append, 10)
        self._stop = self.bus.serve("agent", self.dispatch.handlers(self.verbs), address="a1")

    def restart(self) -> None:
        self._stop()
        self.begin()

    def send(self, row: Any, message: Any) -> None:
        self.bus.cast(row, message, to="a1")


@pytest.fixture
def desk(bus: LocalBus, directory: Path) -> Iterator[Desk]:
    made = Desk(bus, directory)
    yield made
    made.driver.close()


def test_every_verb_of_the_table_of_calls_is_done(desk: Desk) -> None:
    assert {verb.row.name for verb in desk.verbs} == calls.VERBS


def test_a_build_is_spawned_paused_started_and_reported(desk: Desk) -> None:
    asked = spawn("s1")
    desk.send(calls.guest_spawn, calls.Spawn(asked.ticket, asked.guest, paused=True))
    desk.send(calls.guest_power, Power(ticket(step="resume"), "running"))
    assert [(r.ok, r.result) for r in desk.reports] == [
        (True, {"power_state": states.POWER_PAUSED}), (True, {"power_state": states.RUNNING}),
    ]  # fmt: skip
    assert desk.reports[0].ticket == asked.ticket
    assert desk.moved == ["sim-0001"]


def test_a_verb_sent_twice_is_done_once_and_reported_twice_also_after_a_restart(desk: Desk) -> None:
    desk.send(calls.guest_spawn, spawn("s1"))
    desk.send(calls.guest_power, Power(ticket(step="reboot"), "reboot-hard"))
    desk.restart()
    desk.send(calls.guest_power, Power(ticket(step="reboot"), "reboot-hard"))
    assert [r.ticket.step for r in desk.reports] == ["spawn", "reboot", "reboot"]
    assert "boot 2 at" in desk.driver.console_output("sim-0001", "s1")


def test_a_verb_whose_result_was_not_recorded_before_a_kill_is_done_again_without_a_second_guest(desk: Desk) -> None:
    desk.driver.spawn("sim-0001", spawn("s1").guest, paused=False)  # and here the agent was killed
    desk.restart()
    desk.send(calls.guest_spawn, spawn("s1"))
    assert [r.ok for r in desk.reports] == [True]
    assert len(desk.driver.guests("sim-0001")) == 1


def test_a_repeated_verb_is_reported_under_the_ticket_that_asks(desk: Desk) -> None:
    desk.send(calls.guest_spawn, spawn("s1", epoch=1))
    desk.send(calls.guest_spawn, spawn("s1", epoch=2))
    assert [r.ticket.epoch for r in desk.reports] == [1, 2]


def test_an_older_epoch_does_nothing_and_is_not_reported_also_after_a_restart(desk: Desk) -> None:
    desk.send(calls.guest_spawn, spawn("s1", epoch=2))
    desk.restart()
    desk.send(calls.guest_destroy, Destroy(ticket(step="undo", epoch=1)))
    assert len(desk.reports) == 1
    assert len(desk.driver.guests("sim-0001")) == 1


def test_a_failure_is_reported_with_its_code_and_whether_another_host_is_worth_trying(
    bus: LocalBus, directory: Path
) -> None:
    desk = Desk(bus, directory, "spawn@1", "spawn@2!")
    for number in (1, 2):
        desk.send(calls.guest_spawn, spawn("s1", attempt=number))
    assert [(r.ok, r.error_code, r.retriable) for r in desk.reports] == [
        (False, "guest_failed", True), (False, "guest_aborted", False),
    ]  # fmt: skip
    assert "sim-0001" in desk.reports[0].error


def test_a_host_that_is_not_served_and_a_guest_that_is_not_there_are_reported(desk: Desk) -> None:
    desk.send(calls.guest_spawn, spawn("s1", host="elsewhere"))
    desk.send(calls.guest_disk, Disk(ticket(step="attach"), {"volume_id": "v"}))
    assert [r.error_code for r in desk.reports] == ["host_unknown", "guest_not_found"]


def test_an_unexpected_error_is_reported_as_internal(bus: LocalBus, directory: Path) -> None:
    def explode(_driver: Any, _asked: Any) -> dict[str, Any]:
        raise ZeroDivisionError("boom")

    desk = Desk(bus, directory, rows=(Verb(calls.guest_spawn, explode),))
    desk.send(calls.guest_spawn, spawn("s1"))
    assert (desk.reports[0].ok, desk.reports[0].error_code) == (False, "internal")
    assert "boom" in desk.reports[0].error
    assert desk.dispatch.in_hand() == ()


def test_a_report_that_nobody_takes_is_given_when_the_verb_comes_again(desk: Desk) -> None:
    desk._withdraw()
    desk.send(calls.guest_spawn, spawn("s1"))
    desk.bus.serve("conductor", {"verb_report": lambda _ctx, report: desk.reports.append(report)})
    desk.send(calls.guest_spawn, spawn("s1"))
    assert [r.ok for r in desk.reports] == [True]


class Slow:
    """Verbs that wait until they are let go, and note in which order and how many at once they ran."""

    def __init__(self) -> None:
        self.go, self.lock = threading.Event(), threading.Lock()
        self.order: list[str] = []
        self.now = self.most = 0
        self.begun = threading.Semaphore(0)

    def run(self, _driver: Any, asked: Any) -> dict[str, Any]:
        with self.lock:
            self.order.append(asked.ticket.id)
            self.now += 1
            self.most = max(self.most, self.now)
        self.begun.release()
        assert self.go.wait(5)
        with self.lock:
            self.now -= 1
        return {}


@pytest.fixture
def slow(bus: LocalBus, directory: Path) -> Iterator[tuple[Slow, Desk]]:
    work = Slow()
    verbs = (Verb(calls.guest_spawn, work.run, build=True), Verb(calls.guest_power, work.run))
    desk = Desk(bus, directory, rows=verbs)
    desk.driver.quick = False
    desk.restart()
    yield work, desk
    work.go.set()
    desk.dispatch.stop()


def finish(work: Slow, desk: Desk, reports: int) -> None:
    work.go.set()
    deadline = threading.Event()
    for _ in range(500):
        if len(desk.reports) >= reports:
            return
        deadline.wait(0.01)
    raise AssertionError(f"{len(desk.reports)} reports of {reports}")


def test_verbs_of_one_server_run_one_after_the_other_in_their_order(slow: tuple[Slow, Desk]) -> None:
    work, desk = slow
    desk.send(calls.guest_spawn, spawn("s1"))
    for step in ("b", "c", "d"):
        desk.send(calls.guest_power, Power(ticket(step=step), "running"))
    assert work.begun.acquire(timeout=5)
    assert set(desk.dispatch.in_hand()) == {"w1/spawn/1", "w1/b/1", "w1/c/1", "w1/d/1"}
    finish(work, desk, 4)
    assert work.order == ["w1/spawn/1", "w1/b/1", "w1/c/1", "w1/d/1"]
    assert work.most == 1


def test_a_verb_in_hand_that_comes_again_is_ignored_but_reported_under_the_newer_epoch(
    slow: tuple[Slow, Desk]
) -> None:
    work, desk = slow
    desk.send(calls.guest_spawn, spawn("s1", epoch=1))
    assert work.begun.acquire(timeout=5)
    desk.send(calls.guest_spawn, spawn("s1", epoch=2))
    finish(work, desk, 1)
    desk.dispatch.stop()
    assert len(work.order) == 1
    assert [r.ticket.epoch for r in desk.reports] == [2]


def test_a_verb_that_waits_behind_another_is_dropped_when_a_newer_epoch_comes(slow: tuple[Slow, Desk]) -> None:
    work, desk = slow
    desk.send(calls.guest_spawn, spawn("s1", epoch=1))
    desk.send(calls.guest_power, Power(ticket(step="old", epoch=1), "paused"))
    assert work.begun.acquire(timeout=5)
    desk.send(calls.guest_power, Power(ticket(step="new", epoch=2), "running"))
    finish(work, desk, 2)
    assert "w1/old/1" not in work.order


def test_builds_at_once_are_bounded_and_do_not_hold_up_other_verbs(slow: tuple[Slow, Desk]) -> None:
    work, desk = slow
    for number in range(12):
        desk.send(calls.guest_spawn, spawn(f"s{number}", workflow=f"w{number}"))
    for _ in range(10):
        assert work.begun.acquire(timeout=5)
    assert not work.begun.acquire(timeout=0.05)
    desk.send(calls.guest_power, Power(ticket("other", workflow="w99"), "running"))
    assert work.begun.acquire(timeout=5)
    finish(work, desk, 13)


def test_console_output_gives_the_last_lines_asked_for(desk: Desk) -> None:
    from kilonova.agent.verbs import console_output

    desk.send(calls.guest_spawn, spawn("s1"))

    def lines(length: int | None) -> str:
        return console_output(desk.driver, ConsoleOutput("sim-0001", "s1", length)).output

    whole = lines(None)
    assert lines(2) == "".join(whole.splitlines(keepends=True)[-2:])
    assert lines(0) == ""
    assert lines(100000) == whole == lines(-1)
