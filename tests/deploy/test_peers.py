"""The story, and builds and deletes at once, with OpenStack's own Keystone or Placement in the place of ours."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.deploy.deployment import HOSTS, deployment
from tests.deploy.load import Load
from tests.deploy.people import People, amiss, clear, quiet
from tests.scenario.stage import becomes, create, delete

BUILDS = 20


@pytest.fixture(scope="module", params=["keystone", "placement"])
def people(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[People]:
    directory = tmp_path_factory.mktemp(request.param)
    with deployment("mariadb", directory, peers=frozenset({request.param})) as made:
        found = People(made)
        found.settle_in(2 * HOSTS)
        yield found


def test_a_server_is_made_and_deleted_and_leaves_nothing(people: People) -> None:
    server = create(people.demo)
    assert becomes(people.demo, server, "ACTIVE", 30)["addresses"]["private"]
    assert amiss(people) == {}
    assert people.allocated().keys() == {server}
    delete(people.demo, server)
    assert amiss(people) == {}
    assert people.allocated() == {}


def test_builds_and_deletes_with_a_conductor_killed_among_them_leave_what_servers_need(people: People) -> None:
    load = Load(people, BUILDS)
    load.start()
    load.reaches(BUILDS // 2)
    people.made.processes["conductor-1"].kill()
    people.made.processes["conductor-1"].start()
    load.end()
    quiet(people)
    clear(people)


def test_a_token_that_nobody_gave_is_refused(people: People) -> None:
    answer = people.made.transport().send("GET", "http://any/compute/v2.1/servers", {"X-Auth-Token": "0" * 32}, None)
    assert answer[0] == 401
