"""Users of a deployment, and how much it has of what servers need."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import sqlalchemy as sa

from kilonova.db.queries.journal import LIVE
from kilonova.sql.engine import Database
from tests.deploy.deployment import Deployment
from tests.http.compute.cloud import Client, until
from tests.scenario.stage import NETWORK, PLACEMENT, VOLUME

FLAVOR = {"name": "m1.nano", "id": "42", "ram": 192, "disk": 1, "vcpus": 1}
KNOWN_WITHIN = 60.0  # seconds from the start of an agent until servers go to its hosts
STABLE_WITHIN = 90.0  # seconds: a dead conductor's lease is 15
_PLACEMENT = {"service": PLACEMENT, "OpenStack_API_Version": "placement 1.36"}


@dataclass(frozen=True)
class People:
    """`admin`, and `demo`, a member without a quota, who uses the one flavor."""

    made: Deployment

    @cached_property
    def admin(self) -> Client:
        """An administrator."""
        return self.made.login("admin", "admin").at("2.96")

    @cached_property
    def demo(self) -> Client:
        """A user."""
        return self.made.login("demo", "demo").at("2.96")

    def settle_in(self, hosts: int) -> None:
        """Wait for so many hosts; make the flavor and lift the quota."""
        until(lambda: len(self._providers()) == hosts and self._hosts() == hosts, KNOWN_WITHIN)
        self.admin.ok("POST", "/flavors", {"flavor": FLAVOR}, status=200)
        lifted = {"quota_set": {"instances": -1, "cores": -1, "ram": -1}}
        self.admin.ok("PUT", f"/os-quota-sets/{self.demo.project}", lifted)
        lifted = {"quota_set": {"volumes": -1, "gigabytes": -1}}
        self.admin.ok("PUT", f"/os-quota-sets/{self.demo.project}", lifted, service=VOLUME)

    def servers(self) -> list[dict[str, Any]]:
        """All servers, in full."""
        found: list[dict[str, Any]] = self.admin.get("/servers/detail?all_tenants=1&limit=1000")["servers"]
        return found

    def _hosts(self) -> int:
        rows = self.admin.get("/os-services?binary=nova-compute")["services"]
        return sum(row["state"] == "up" for row in rows)

    def _providers(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.admin.get("/resource_providers", **_PLACEMENT)["resource_providers"]
        return [row for row in found if self._inventory(row["uuid"])]

    def _inventory(self, provider: str) -> Any:
        return self.admin.get(f"/resource_providers/{provider}/inventories", **_PLACEMENT)["inventories"]

    # -- what there is -------------------------------------------------------------------------------------------------

    def allocated(self) -> dict[str, dict[str, dict[str, int]]]:
        """Resources by consumer and host."""
        found: dict[str, dict[str, dict[str, int]]] = {}
        for provider in self._providers():
            path = f"/resource_providers/{provider['uuid']}/allocations"
            for consumer, row in self.admin.get(path, **_PLACEMENT)["allocations"].items():
                found.setdefault(consumer, {})[provider["name"]] = row["resources"]
        return found

    def ports(self) -> list[str]:
        """The server of each port that is a server's."""
        found = self.admin.get("/ports", service=NETWORK)["ports"]
        return sorted(row["device_id"] for row in found if row["device_owner"].startswith("compute:"))

    def attached(self) -> list[tuple[str, str]]:
        """Server and volume of each attachment; volumes without one have no server."""
        found = self.admin.get("/volumes/detail?all_tenants=1", service=VOLUME)["volumes"]
        pairs = [(one["server_id"], row["id"]) for row in found for one in row["attachments"]]
        return sorted(pairs + [("", row["id"]) for row in found if not row["attachments"]])

    def guests(self) -> list[tuple[str, str]]:
        """Server and host of each guest on the simulated hypervisors."""
        found: list[tuple[str, str]] = []
        for file in self.made.directory.glob("agent-*/guests.db"):
            with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as database:
                found += database.execute("SELECT server, host FROM guests").fetchall()
        return sorted(found)

    def unfinished(self) -> list[Any]:
        """Workflows that somebody still has to do something about."""
        found: list[Any] = []
        for name in (one for one in self.made.databases if one.startswith(("api", "cell"))):
            database = Database(self.made.url(name))
            with database.read() as connection:
                states = sa.text("SELECT name, subject, state, step, owner, log FROM workflows WHERE state IN :live")
                live = [*LIVE, "held"]
                found += connection.execute(states.bindparams(sa.bindparam("live", live, expanding=True))).all()
            database.dispose()
        return found


def amiss(people: People) -> dict[str, Any]:
    """Where what there is differs from what the servers need; empty when nothing is amiss.

    A server in ERROR may keep what it had on its host until it is deleted, but nothing anywhere else.
    """
    servers = people.servers()
    unstable = [row["id"] for row in servers if not stable(row)]
    active = {row["id"]: row for row in servers if row["status"] == "ACTIVE"}
    failed = {row["id"]: row for row in servers if row["status"] == "ERROR"}
    needs = {
        "allocations": {
            id_: {row["OS-EXT-SRV-ATTR:hypervisor_hostname"]: {"VCPU": 1, "MEMORY_MB": 192} | _disk(row)}
            for id_, row in active.items()
        },
        "ports": sorted(active),
        "attachments": sorted((id_, one["id"]) for id_, row in active.items() for one in _volumes(row)),
        "guests": sorted((id_, row["OS-EXT-SRV-ATTR:host"]) for id_, row in active.items()),
    }  # fmt: skip
    there: dict[str, Any] = {
        "allocations": {id_: row for id_, row in people.allocated().items() if not _kept(failed, id_, row)},
        "ports": [id_ for id_ in people.ports() if id_ not in failed],
        "attachments": [pair for pair in people.attached() if pair[0] not in failed],
        "guests": [pair for pair in people.guests() if pair[0] not in failed],
    }
    wrong = {name: (needs[name], there[name]) for name in needs if needs[name] != there[name]}
    found: dict[str, Any] = {name: _difference(*pair) for name, pair in wrong.items()}
    if unstable:
        found["unstable"] = unstable
    if left := people.unfinished():
        found["workflows"] = left
    return found


def stable(server: dict[str, Any]) -> bool:
    """Whether nothing is under way, and a failure is explained."""
    if server["OS-EXT-STS:task_state"] is not None:
        return False
    return server["status"] == "ACTIVE" or (server["status"] == "ERROR" and bool(server["fault"]["message"]))


def quiet(people: People, seconds: float = STABLE_WITHIN) -> float:
    """Wait until nothing is amiss; how many seconds it took."""
    began = time.monotonic()
    while found := amiss(people):
        assert time.monotonic() - began < seconds, found
        time.sleep(0.5)
    return time.monotonic() - began


def clear(people: People) -> None:
    """Delete every server, and see that nothing is left."""
    for server in people.servers():
        assert people.demo.status("DELETE", f"/servers/{server['id']}") in (204, 404)
    until(lambda: not people.servers(), STABLE_WITHIN)
    quiet(people)
    assert people.allocated() == {}
    assert people.attached() == []


def _kept(failed: dict[str, dict[str, Any]], consumer: str, row: dict[str, Any]) -> bool:
    return consumer in failed and set(row) == {failed[consumer]["OS-EXT-SRV-ATTR:hypervisor_hostname"]}


def _disk(server: dict[str, Any]) -> dict[str, int]:
    return {} if _volumes(server) else {"DISK_GB": 1}


def _volumes(server: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = server["os-extended-volumes:volumes_attached"]
    return found


def _difference(needed: Any, there: Any) -> dict[str, Any]:
    if isinstance(needed, dict):
        missing = {key: value for key, value in needed.items() if there.get(key) != value}
        return {"missing": missing, "too much": {key: row for key, row in there.items() if needed.get(key) != row}}
    return {"missing": [one for one in needed if one not in there], "too much": _beyond(needed, there)}


def _beyond(needed: list[Any], there: list[Any]) -> list[Any]:
    left = list(needed)
    more = []
    for one in there:
        if one in left:
            left.remove(one)
        else:
            more.append(one)
    return more
