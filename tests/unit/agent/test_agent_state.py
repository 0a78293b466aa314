from __future__ import annotations

from pathlib import Path

from kilonova.agent.state import AgentState, agent_identity
from kilonova.bus.calls import VerbReport
from tests.unit.agent.fakes import ticket


def test_the_epoch_rises_with_every_start_and_when_the_file_was_lost(directory: Path) -> None:
    epochs = [AgentState(directory).begin() for _ in range(3)]
    (directory / "agent.db").unlink()
    (directory / "agent.db-wal").unlink(missing_ok=True)
    (directory / "agent.db-shm").unlink(missing_ok=True)
    epochs.append(AgentState(directory).begin() + 3)  # the clock may not have moved on within the test's second
    assert epochs == sorted(set(epochs))


def test_the_identity_is_made_once(directory: Path) -> None:
    first = agent_identity(directory, "agent")
    assert first.startswith("agent-")
    assert agent_identity(directory, "agent") == first


def test_an_older_epoch_is_refused_also_after_a_restart(directory: Path) -> None:
    state = AgentState(directory)
    assert state.admit(ticket(epoch=3))
    assert state.admit(ticket(epoch=3))
    assert not state.admit(ticket(epoch=2))
    again = AgentState(directory)
    assert not again.admit(ticket(epoch=2))
    assert again.admit(ticket(epoch=4))


def test_another_workflow_of_the_server_begins_with_a_low_epoch(directory: Path) -> None:
    state = AgentState(directory)
    assert state.admit(ticket(workflow="build", epoch=5))
    assert state.admit(ticket(workflow="delete", epoch=0))


def test_a_ticket_is_stale_once_a_newer_one_was_admitted(directory: Path) -> None:
    state = AgentState(directory)
    state.admit(ticket(epoch=1))
    assert not state.stale(ticket(epoch=1))
    state.admit(ticket(epoch=2))
    assert state.stale(ticket(epoch=1))


def test_results_outlive_the_process_and_are_bounded(directory: Path) -> None:
    state = AgentState(directory)
    for number in range(10):
        state.keep_result(VerbReport(ticket(attempt=number), True, {"number": number}))
        state.admit(ticket(workflow=f"w{number}"))
    state.prune(keep=4)
    again = AgentState(directory)
    assert again.result(ticket(attempt=5).id) is None
    kept = again.result(ticket(attempt=6).id)
    assert kept is not None
    assert kept.result == {"number": 6}


def test_prints_are_kept_by_kind_and_forgotten_by_host(directory: Path) -> None:
    state = AgentState(directory)
    state.keep_prints("report", {"a": b"1", "b": b"2"})
    state.keep_prints("provider", {"a": b"3"})
    state.forget_prints("report", ["a"])
    again = AgentState(directory)
    assert again.prints("report") == {"b": b"2"}
    assert again.prints("provider") == {"a": b"3"}
