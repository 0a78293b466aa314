"""SIGSTOP of each kind of process beyond every lease, in the middle of fifty builds and deletes, and then SIGCONT: what
wakes up finds its work done by others, and does nothing twice."""

from __future__ import annotations

import time

import pytest

from tests.deploy.load import Load
from tests.deploy.people import People, clear, quiet

BUILDS = 50
STALL = 18.0  # seconds; a conductor's lease is 15


OTHERS = ("api", "placement", "scheduler", "agent")


@pytest.mark.parametrize(
    ("people", "kinds"),
    [("postgresql", ("conductor",)), ("postgresql", OTHERS), ("mariadb", ("conductor", *OTHERS, "embedded"))],
    indirect=["people"],
)
def test_processes_that_stall_do_nothing_that_others_have_done(people: People, kinds: tuple[str, ...]) -> None:
    victims = [people.made.first(kind) for kind in kinds]
    load = Load(people, BUILDS)
    load.start()
    load.reaches(BUILDS // 2)
    for victim in victims:
        victim.pause()
    time.sleep(STALL)
    for victim in victims:
        victim.go_on()
    load.end()
    quiet(people)
    clear(people)
