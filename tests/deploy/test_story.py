"""The story of the first issue on separate processes, databases and a broker: token, server, ACTIVE, gone."""

from __future__ import annotations

from tests.deploy.people import People, amiss
from tests.http.compute.cloud import until
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


def test_a_decision_is_told_and_a_dry_run_reaches_a_scheduler_in_another_process(people: People) -> None:
    admin = people.admin
    server = create(people.demo)
    becomes(people.demo, server, "ACTIVE", 30)
    until(lambda: admin.status("GET", f"/decisions/{server}", service="/scheduler") == 200, 30)
    decision = admin.get(f"/decisions/{server}", service="/scheduler")["decision"]
    assert (decision["outcome"], decision["servers"]) == ("placed", [server])
    thought = admin.ok("POST", "/simulate", {"simulate": {"server": server}}, service="/scheduler")["decision"]
    assert thought["outcome"] == "placed"
    assert admin.ok("POST", "/capacity", {"capacity": {"server": server}}, service="/scheduler")["capacity"]["fits"] > 0
    delete(people.demo, server)
    assert people.allocated() == {}
