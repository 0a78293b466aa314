"""A cloud that is started again with other hosts, or in the middle of work."""

from __future__ import annotations

from pathlib import Path

from tests.databases import Places
from tests.http.compute.cloud import until
from tests.scenario.stage import NETWORK, NOTHING, becomes, boot, create, delete, stage

VERSION = "2.96"


def test_hosts_that_are_no_longer_there_get_no_server_and_give_theirs_up(tmp_path: Path, places: Places) -> None:
    with stage(tmp_path / "state", places, hosts=3) as before:
        old = [boot(before.demo.at(VERSION))["id"] for _ in range(3)]
    with stage(tmp_path / "state", places, hosts=1) as after:
        demo = after.demo.at(VERSION)
        new = [boot(demo)["id"] for _ in range(3)]
        hosts = {after.admin.get(f"/servers/{server}")["server"]["OS-EXT-SRV-ATTR:host"] for server in new}
        assert hosts == {"sim-0001"}
        delete(demo, *old, *new)
        assert after.left() == NOTHING


def test_work_that_was_under_way_at_the_end_is_finished_by_the_next_start(tmp_path: Path, places: Places) -> None:
    slow = "[simulated]\nspawn_delay = 0.3\ndestroy_delay = 0.3\n"
    with stage(tmp_path / "state", places, config=slow) as before:
        doomed = [boot(before.demo.at(VERSION))["id"] for _ in range(2)]
        started = [create(before.demo.at(VERSION)) for _ in range(6)]
        for server in doomed:
            before.demo.ok("DELETE", f"/servers/{server}", status=204)
    with stage(tmp_path / "state", places) as after:
        demo = after.demo.at(VERSION)
        for server in started:
            becomes(demo, server, "ACTIVE", 40)
        for server in doomed:
            until(lambda server=server: demo.status("GET", f"/servers/{server}") == 404, 40)
        assert after.used()["VCPU"] == len(started)
        assert len(demo.get("/ports", service=NETWORK)["ports"]) == len(started) + 1, "theirs and the router's"
        delete(demo, *started)
        assert after.left() == NOTHING
