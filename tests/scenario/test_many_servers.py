"""Many servers in one request, and many hosts."""

from __future__ import annotations

import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

from kilonova.core import clock
from tests.databases import Places
from tests.http.compute.cloud import Client, until
from tests.scenario.stage import NOTHING, Stage, delete, flavor, image, network, stage

VERSION = "2.96"


def unlimited(here: Stage) -> None:
    """No quota stops the project demo."""
    sets = {"instances": -1, "cores": -1, "ram": -1}
    here.admin.ok("PUT", f"/os-quota-sets/{here.demo.project}", {"quota_set": sets})


def create_many(client: Client, least: int, most: int | None = None, **values: Any) -> None:
    """One request for equal servers of the smallest flavor."""
    server = {
        "name": "many", "flavorRef": flavor(client, "m1.nano"), "imageRef": image(client), "min_count": least,
        "networks": [{"uuid": network(client)}],
    } | values  # fmt: skip
    if most is not None:
        server["max_count"] = most
    client.ok("POST", "/servers", {"server": server}, status=202)


def all_active(client: Client, count: int) -> list[dict[str, Any]]:
    """The servers, once all of them are ACTIVE."""

    def found() -> list[dict[str, Any]] | None:
        servers: list[dict[str, Any]] = client.get("/servers/detail")["servers"]
        assert not [row for row in servers if row["status"] == "ERROR"]
        active = [row for row in servers if row["status"] == "ACTIVE"]
        return active if len(active) == count else None

    servers: list[dict[str, Any]] = until(found, 30)
    return servers


def test_many_servers_of_one_request_hold_no_thread_each(tmp_path: Path, places: Places) -> None:
    count = 50 if places.kind == "sqlite" else 25  # a statement costs the client of a server several times as much
    slow = "[simulated]\nspawn_delay = 0.2\n"
    with stage(tmp_path / "state", places, hosts=4, config=slow) as here:
        unlimited(here)
        demo = here.demo.at(VERSION)
        before, most = threading.active_count(), 0
        create_many(demo, count)
        end = clock.monotonic() + 30
        while len([row for row in demo.get("/servers/detail")["servers"] if row["status"] == "ACTIVE"]) < count:
            most = max(most, threading.active_count())
            assert clock.monotonic() < end
            clock.sleep(0.05)
        assert most - before < count, (before, most)
        servers = all_active(demo, count)
        assert {row["name"] for row in servers} == {f"many-{number}" for number in range(1, count + 1)}
        assert len({row["addresses"]["private"][0]["addr"] for row in servers}) == count
        assert here.used()["VCPU"] == count
        delete(demo, *(row["id"] for row in servers))
        assert here.left() == NOTHING


def test_a_range_of_servers_is_cut_to_what_the_quota_leaves(tmp_path: Path, places: Places) -> None:
    with stage(tmp_path / "state", places) as here:
        demo = here.demo.at(VERSION)
        limits = demo.get("/limits")["limits"]["absolute"]
        create_many(demo, 2, limits["maxTotalInstances"] + 10)
        assert len(all_active(demo, limits["maxTotalInstances"])) == limits["maxTotalInstances"]
        body = {"server": {"name": "more", "flavorRef": "42", "imageRef": image(demo), "networks": "none"}}
        assert "Quota exceeded for instances" in demo.refused(403, "POST", "/servers", body)


def test_servers_spread_over_two_hundred_hosts(tmp_path: Path) -> None:
    began = time.process_time()
    with stage(tmp_path / "state", hosts=200) as here:
        assert time.process_time() - began < 4, "200 hosts cost a second or so of processor"
        unlimited(here)
        admin = here.admin.at(VERSION)
        up = [row for row in admin.get("/os-services?binary=nova-compute")["services"] if row["state"] == "up"]
        assert len(up) == 200
        create_many(here.demo.at(VERSION), 40)
        all_active(here.demo.at(VERSION), 40)
        servers = admin.get("/servers/detail?all_tenants=1")["servers"]
        hosts = Counter(row["OS-EXT-SRV-ATTR:host"] for row in servers)
        assert hosts.keys() <= {row["host"] for row in up}
        assert len(hosts) == 40, "equal hosts are filled one server each"
