"""kill -9 of each kind of process in the middle of fifty builds and deletes: every server ends stable, and what there
is outside equals what the servers need."""

from __future__ import annotations

import pytest

from tests.deploy.load import Load
from tests.deploy.people import People, clear, quiet

BUILDS = 50


@pytest.mark.parametrize("kind", ["api", "placement", "scheduler", "conductor", "agent"])
def test_a_killed_process_leaves_no_server_in_between(people: People, kind: str) -> None:
    victim = people.made.processes[f"{kind}-1"]
    load = Load(people, BUILDS)
    load.start()
    load.reaches(BUILDS // 2)
    victim.kill()
    if kind == "agent":
        victim.start()  # nobody else can do its work
    load.end()
    took = quiet(people)
    print(f"{kind} killed: stable after {took:.1f} s")
    if kind != "agent":
        victim.start()
    victim.says("ready: ")
    clear(people)
