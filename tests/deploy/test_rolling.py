"""A rolling restart under creates: clients that try again notice nothing, and no server is left in between."""

from __future__ import annotations

import pytest

from tests.deploy.load import Load
from tests.deploy.people import People, clear, quiet

ORDER = ("embedded", "placement", "api", "scheduler", "conductor", "agent")
MOST = 400  # builds
PAUSE = 1.0  # seconds between two builds of a user


@pytest.mark.parametrize("people", ["mariadb"], indirect=True)
def test_services_restarted_one_after_the_other_fail_no_request_for_good_and_no_server(people: People) -> None:
    load = Load(people, MOST, PAUSE)
    load.start()
    for number, kind in enumerate(ORDER, 1):
        load.reaches(10 * number)
        process = people.made.first(kind)
        process.terminate()
        assert process.ends() == 0
        process.start()
        process.says("ready: ")
    load.reaches(load.begun + 10)
    load.enough()
    load.end()
    quiet(people)
    assert [row["fault"] for row in people.servers() if row["status"] == "ERROR"] == []
    clear(people)
