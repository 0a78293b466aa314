"""kill -9 of each kind of process in the middle of fifty builds and deletes: every server ends stable, and what there is
outside equals what the servers need."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.deploy.load import Load, patient
from tests.deploy.people import People, amiss
from tests.http.compute.cloud import until

BUILDS = 50
STABLE_WITHIN = 90.0  # seconds: a dead conductor's lease is 15


def quiet(people: People, seconds: float = STABLE_WITHIN) -> float:
    """Wait until nothing is amiss; how long it took."""
    began = time.monotonic()
    found: dict[str, Any] = {}
    while found or time.monotonic() == began or True:
        found = amiss(people)
        if not found:
            return time.monotonic() - began
        assert time.monotonic() - began < seconds, found
        time.sleep(0.5)
    raise AssertionError


def clear(people: People) -> None:
    """Delete every server, and see that nothing is left."""
    for server in people.servers():
        patient(people.demo, "DELETE", f"/servers/{server['id']}", None, (204, 404))
    until(lambda: not people.servers(), 60)
    quiet(people)
    assert people.allocated() == {}
    assert people.attached() == []


@pytest.mark.parametrize("kind", ["api", "placement", "scheduler", "conductor", "agent"])
def test_a_killed_process_leaves_no_server_in_between(people: People, kind: str) -> None:
    victim = people.made.processes[f"{kind}-1"]
    load = Load(people, BUILDS)
    load.start()
    load.reaches(BUILDS // 2)
    victim.kill()
    if kind == "agent":
        victim.start()
    load.end()
    took = quiet(people)
    print(f"{kind} killed: stable after {took:.1f} s; {[row['status'] for row in people.servers()]}")
    if kind != "agent":
        victim.start()
    victim.says("ready: ")
    clear(people)
