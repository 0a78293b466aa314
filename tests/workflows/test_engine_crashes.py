"""The promise, on the toy: killed anywhere, failing anywhere, everything ends stable and nothing is left over."""

from __future__ import annotations

from pathlib import Path

import pytest

from kilonova.db import cell_schema
from kilonova.workflows.step import Failure
from tests.databases import KINDS, Shared
from tests.workflows.harness import (
    Faults,
    assert_repeats_are_harmless,
    assert_survives_crashes,
    assert_survives_failures,
    drive,
)
from tests.workflows.toy import toy_stage


@pytest.mark.parametrize("kind", KINDS)
def test_a_workflow_killed_at_any_point_of_success_is_done_afterwards(
    tmp_path: Path, shared: Shared, kind: str
) -> None:
    """On each kind of database; the others on SQLite, where the same statements take a fifth of the time."""
    stage = toy_stage(ends=["done"], empty=lambda: shared.empty(kind, "cell", cell_schema.metadata))
    ids = (True, False) if kind == "sqlite" else (True,)
    assert assert_survives_crashes(stage, tmp_path, same_id=ids) > 10 * len(ids)


def test_killed_at_any_point_while_it_goes_to_another_host_it_is_done_there(tmp_path: Path) -> None:
    assert_survives_crashes(toy_stage(("host-1", "host-2"), bad=["host-1"], ends=["done"]), tmp_path)


def test_killed_at_any_point_of_a_failure_with_no_host_left_nothing_remains(tmp_path: Path) -> None:
    assert_survives_crashes(toy_stage(("host-1",), bad=["host-1"], ends=["undone"]), tmp_path)


@pytest.mark.parametrize("step", ["schedule", "claim", "network", "spawn", "plugged"])
def test_killed_at_any_point_while_a_step_fails_nothing_remains(tmp_path: Path, step: str) -> None:
    assert_survives_crashes(toy_stage(ends=["undone"]), tmp_path, fail=step, same_id=(True,))


def test_failing_at_any_step_leaves_nothing_behind(tmp_path: Path) -> None:
    assert_survives_failures(toy_stage(("host-1", "host-2"), ends=["undone"]), tmp_path)


def test_every_do_and_undo_may_run_twice(tmp_path: Path) -> None:
    assert_repeats_are_harmless(toy_stage(), tmp_path)


def test_a_lost_verb_is_sent_again_until_it_is_heard(tmp_path: Path) -> None:
    stage = drive(toy_stage(ends=["done"], deaf=2), tmp_path / "x", Faults())
    assert stage.world.agent.received == ["w1/spawn/1"] * 3


def test_the_hook_after_undo_is_told_what_failed(tmp_path: Path) -> None:
    written: list[Failure] = []
    drive(toy_stage(bad=["host-1"], ends=["undone"], written=written), tmp_path / "x", Faults())
    assert [(f.step, f.code, f.text) for f in written] == [("spawn", "no_disk", "no_disk")]


def test_a_leak_is_seen_by_the_kit(tmp_path: Path) -> None:
    """The kit itself: an undo that forgets its port must be caught."""
    make = toy_stage(ends=["undone"], bad=["host-1"])

    def leaking(faults: Faults, folder: Path) -> object:
        stage = make(faults, folder)
        stage.world.outside.delete_port = lambda port: None
        return stage

    with pytest.raises(AssertionError):
        drive(leaking, tmp_path / "x", Faults())  # type: ignore[arg-type]
