"""The story of the first issue on separate processes, databases and a broker: token, server, ACTIVE, gone."""

from __future__ import annotations

from tests.deploy.people import People, amiss
from tests.scenario.stage import becomes, create, delete


def test_a_server_is_made_and_deleted_and_leaves_nothing(people: People) -> None:
    server = create(people.demo)
    shown = becomes(people.demo, server, "ACTIVE", 30)
    assert shown["addresses"]["private"]
    assert amiss(people) == {}
    assert people.allocated().keys() == {server}
    delete(people.demo, server)
    assert amiss(people) == {}
    assert people.allocated() == {}
