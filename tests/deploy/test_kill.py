"""kill -9 of each kind of process in the middle of fifty builds and deletes: every server ends stable, and what there
is outside equals what the servers need."""

from __future__ import annotations

import pytest

from tests.deploy.load import Load
from tests.deploy.people import People, clear, quiet

BUILDS = 50


KINDS = ("api", "placement", "scheduler", "conductor", "agent", "embedded")
ALONE = ("agent", "embedded")
"""Nobody else can do their work."""


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("people", ["postgresql"], indirect=True)
def test_a_killed_process_leaves_no_server_in_between(people: People, kind: str) -> None:
    victim = people.made.first(kind)
    load = Load(people, BUILDS)
    load.start()
    load.reaches(BUILDS // 2)
    victim.kill()
    if kind in ALONE:
        victim.start()
    load.end()
    quiet(people)
    if kind not in ALONE:
        victim.start()
    victim.says("ready: ")
    clear(people)


@pytest.mark.parametrize("people", ["mariadb"], indirect=True)
def test_processes_killed_one_after_the_other_leave_no_server_in_between(people: People) -> None:
    load = Load(people, BUILDS)
    load.start()
    for number, kind in enumerate(KINDS, 1):
        load.reaches(BUILDS * number // (len(KINDS) + 1))
        people.made.first(kind).kill()
        people.made.first(kind).start()
    load.end()
    quiet(people)
    for kind in KINDS:
        people.made.first(kind).says("ready: ")
    clear(people)
