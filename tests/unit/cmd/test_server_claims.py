"""Consumers against servers: what is amiss, what is only on its way, and what a repair may touch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from kilonova.clients.placement import HttpPlacement
from kilonova.clients.rest import FixedToken, RestClient
from kilonova.clients.servers import Migration, Server, Size
from kilonova.cmd.server_claims import Cloud, Suspect
from kilonova.core import clock, ids
from kilonova.core.context import Context
from kilonova.http.transport import WsgiTransport
from kilonova.placement.app import make_app
from kilonova.placement.store.operate import holdings
from kilonova.placement.store.prepare import prepare
from kilonova.sql.engine import Database

SMALL = Size("small", 2, 512, 10, 0, 0, ())
FITS = {"VCPU": 2, "MEMORY_MB": 512, "DISK_GB": 10}
LONG_AGO = clock.utcnow() - timedelta(days=1)


@dataclass
class Nova:
    """A compute service with servers and migrations. unlisted: ids that it shows and does not list."""

    servers: dict[str, Server] = field(default_factory=dict)
    moves: list[Migration] = field(default_factory=list)
    unlisted: set[str] = field(default_factory=set)

    def every(self) -> dict[str, Server]:
        return {id_: server for id_, server in self.servers.items() if id_ not in self.unlisted}

    def show(self, server: str) -> Server | None:
        return self.servers.get(server)

    def migrations(self, server: str | None = None) -> Iterator[Migration]:
        return iter([move for move in self.moves if server in (None, move.server)])


@dataclass
class Scene:
    """A compute service, and a Placement with two hosts."""

    nova: Nova
    placement: HttpPlacement
    database: Database
    hosts: dict[str, str]

    def cloud(self, age: float = 0.0) -> Cloud:
        return Cloud(self.nova, self.placement, timedelta(seconds=age))

    def server(self, **values: Any) -> str:
        made = Server(ids.new_uuid(), "p", "u", "one", "active", False, False, LONG_AGO, SMALL)
        made = replace(made, **values)
        self.nova.servers[made.id] = made
        return made.id

    def holds(
        self, consumer: str, host: str = "one", kind: str | None = "INSTANCE", generation: int | None = None,
        **amounts: int,
    ) -> str:  # fmt: skip
        allocations = {self.hosts[host]: {"resources": amounts}}
        body: dict[str, Any] = {
            "allocations": allocations, "project_id": "p", "user_id": "u", "consumer_generation": generation,
        }  # fmt: skip
        if kind is None:
            self.placement.post_allocations({consumer: body})
        else:
            self.placement.post_allocations({consumer: body | {"consumer_type": kind}}, version="1.38")
        return consumer

    def suspects(self, age: float = 0.0) -> list[Suspect]:
        """What two looks leave."""
        cloud = self.cloud(age)
        return list(cloud.second(cloud.first(holdings.pages(self.database)).suspects))

    def found(self, age: float = 0.0) -> list[tuple[str, str]]:
        return [(one.check, one.consumer) for one in self.suspects(age)]

    def mend(self) -> list[str]:
        cloud = self.cloud()
        return [cloud.mend(one) for one in self.suspects()]

    def held(self, consumer: str) -> dict[str, Any]:
        found = self.placement.allocations(consumer)["allocations"]
        return {uuid: row["resources"] for uuid, row in found.items()}


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    database = Database(f"sqlite:///{tmp_path}/placement.db")
    prepare(database)
    app = make_app(database)

    def as_admin(environ: dict[str, Any], start_response: Any) -> Any:
        who = Context(
            request_id=ids.new_request_id(), overwrite=False, roles=["admin"], project_id="a", user_id="a"
        )  # fmt: skip
        return app(environ | {"kilonova.context": who}, start_response)

    placement = HttpPlacement(RestClient("placement", "http://p", WsgiTransport(as_admin), FixedToken("t")))
    hosts = {}
    for name in ("one", "two"):
        hosts[name] = ids.new_uuid()
        generation = placement.ensure_provider(hosts[name], name)
        stock = {"VCPU": {"total": 8}, "MEMORY_MB": {"total": 2048}, "DISK_GB": {"total": 100}}
        placement.set_inventory(hosts[name], stock, generation)
    yield Scene(Nova(), placement, database, hosts)
    database.dispose()


def test_servers_that_hold_what_their_flavor_says_are_well(scene: Scene) -> None:
    scene.holds(scene.server(), **FITS)
    assert scene.found() == []


@pytest.mark.parametrize("kind", ["INSTANCE", "MIGRATION", None])
def test_a_consumer_that_is_no_server_is_an_orphan_and_is_released(scene: Scene, kind: str | None) -> None:
    orphan = scene.holds(ids.new_uuid(), kind=kind, VCPU=1)
    (suspect,) = scene.suspects()
    assert suspect.finding.subject == f"consumer {orphan}"
    assert suspect.text == "no server has this id, and it holds 1 VCPU of one"
    assert scene.mend() == [""]
    assert scene.held(orphan) == {}
    assert scene.found() == []


def test_consumers_of_other_types_are_counted_and_left(scene: Scene) -> None:
    scene.holds(ids.new_uuid(), kind="CUSTOM_RESERVATION", VCPU=1)
    looked = scene.cloud().first(holdings.pages(scene.database))
    assert (looked.suspects, looked.others) == ([], 1)


def test_what_is_young_is_left_on_both_sides(scene: Scene) -> None:
    scene.holds(ids.new_uuid(), VCPU=1)
    scene.server(created_at=clock.utcnow() - timedelta(seconds=1))
    looked = scene.cloud(age=60).first(holdings.pages(scene.database))
    assert (looked.suspects, looked.young) == ([], 2)
    assert len(scene.cloud(age=0).first(holdings.pages(scene.database)).suspects) == 2


def test_a_server_that_the_list_leaves_out_is_no_orphan(scene: Scene) -> None:
    made = scene.holds(scene.server(vm_state="soft-delete"), **FITS)
    scene.nova.unlisted.add(made)
    cloud = scene.cloud()
    looked = cloud.first(holdings.pages(scene.database))
    assert [one.consumer for one in looked.suspects] == [made]
    assert list(cloud.second(looked.suspects)) == []


def test_a_consumer_that_was_written_between_the_looks_is_left(scene: Scene) -> None:
    orphan = scene.holds(ids.new_uuid(), VCPU=1)
    cloud = scene.cloud()
    looked = cloud.first(holdings.pages(scene.database))
    scene.holds(orphan, generation=1, VCPU=2)
    assert list(cloud.second(looked.suspects)) == []


def test_a_consumer_that_is_written_after_the_looks_is_not_released(scene: Scene) -> None:
    orphan = scene.holds(ids.new_uuid(), VCPU=1)
    (suspect,) = scene.suspects()
    scene.holds(orphan, generation=1, VCPU=2)
    assert scene.cloud().mend(suspect) == "it was changed meanwhile"
    assert scene.held(orphan) == {scene.hosts["one"]: {"VCPU": 2}}


@pytest.mark.parametrize(
    ("status", "amiss", "reason"),
    [
        ("running", False, None), ("finished", False, None), ("done", False, None),
        ("confirmed", True, ""), ("error", True, "its migration failed"),
    ],
)  # fmt: skip
def test_a_migration_holds_for_as_long_as_it_is_under_way(
    scene: Scene, status: str, amiss: bool, reason: str | None
) -> None:
    server = scene.holds(scene.server(node="two"), host="two", **FITS)
    move = scene.holds(ids.new_uuid(), kind="MIGRATION", **FITS)
    scene.nova.moves.append(Migration(move, server, status))
    assert scene.found() == ([("orphan", move)] if amiss else [])
    if reason is not None:
        (said,) = scene.mend()
        assert said.startswith(reason) if reason else said == ""
        assert bool(scene.held(move)) == bool(reason)


def test_a_server_that_holds_nothing_gets_what_its_flavor_says(scene: Scene) -> None:
    flavor = replace(SMALL, swap=1025, ephemeral=3, extra_specs=(("resources:VCPU", "1"), ("hw:mem_page_size", "any")))
    server = scene.server(size=flavor, from_volume=True)
    assert scene.found() == [("missing", server)]
    assert scene.mend() == [""]
    assert scene.held(server) == {scene.hosts["one"]: {"VCPU": 1, "MEMORY_MB": 512, "DISK_GB": 5}}
    assert scene.found() == []


@pytest.mark.parametrize(
    "values",
    [
        {"node": ""}, {"vm_state": "building"}, {"vm_state": "shelved_offloaded"}, {"vm_state": "soft-delete"},
        {"busy": True}, {"size": None},
    ],
)  # fmt: skip
def test_a_server_that_need_not_hold_anything_may_hold_nothing(scene: Scene, values: dict[str, Any]) -> None:
    scene.server(**values)
    assert scene.found() == []


def test_a_claim_for_a_server_that_holds_something_by_now_is_not_made(scene: Scene) -> None:
    server = scene.server()
    (suspect,) = scene.suspects()
    scene.holds(server, VCPU=1)
    assert scene.cloud().mend(suspect) == "it was changed meanwhile"
    assert scene.held(server) == {scene.hosts["one"]: {"VCPU": 1}}


def test_a_claim_that_does_not_fit_is_left_with_the_words_of_placement(scene: Scene) -> None:
    scene.server(size=replace(SMALL, vcpus=9))
    (said,) = scene.mend()
    assert "exceed the capacity" in said


@pytest.mark.parametrize(
    "extra",
    [(("resources1:VGPU", "1"),), (("pci_passthrough:alias", "nic:1"),), (("accel:device_profile", "x"),), None],
)
def test_a_flavor_that_asks_for_more_than_a_host_is_left(scene: Scene, extra: Any) -> None:
    scene.server(size=replace(SMALL, extra_specs=extra))
    (said,) = scene.mend()
    assert "more than a host's plain resources" in said


def test_a_host_without_a_provider_is_said(scene: Scene) -> None:
    scene.server(node="three")
    assert scene.mend() == ["there is no provider of the name three"]


def test_a_server_that_holds_something_of_another_host_is_said_and_left(scene: Scene) -> None:
    server = scene.holds(scene.server(node="two"), host="one", **FITS)
    (suspect,) = scene.suspects()
    assert (suspect.check, suspect.text) == ("host", "on two and holds something of one")
    assert scene.mend() == ["only its administrator can say which is right"]
    assert scene.held(server) == {scene.hosts["one"]: FITS}


@pytest.mark.parametrize("status", ["running", "done", "pre-migrating"])
def test_a_server_on_its_way_is_not_judged(scene: Scene, status: str) -> None:
    server = scene.holds(scene.server(node="two"), host="one", **FITS)
    scene.nova.moves.append(Migration(ids.new_uuid(), server, status))
    assert scene.found() == []


def test_a_provider_that_is_shared_may_be_of_another_tree(scene: Scene) -> None:
    pool = ids.new_uuid()
    generation = scene.placement.ensure_provider(pool, "pool")
    scene.placement.set_inventory(pool, {"DISK_GB": {"total": 500}}, generation)
    server = scene.server()
    body = {
        scene.hosts["one"]: {"resources": {"VCPU": 2, "MEMORY_MB": 512}}, pool: {"resources": {"DISK_GB": 10}},
    }  # fmt: skip
    scene.placement.put_allocations(server, body, "p", "u", generation=None)
    assert scene.found() == [("host", server)]
    scene.placement.set_traits(pool, ["MISC_SHARES_VIA_AGGREGATE"], scene.placement.traits(pool)[1])
    assert scene.found() == []


def test_amounts_that_are_not_the_flavors_are_said_and_left(scene: Scene) -> None:
    server = scene.holds(scene.server(from_volume=True), VCPU=1, MEMORY_MB=512, DISK_GB=10)
    (suspect,) = scene.suspects()
    assert (suspect.check, suspect.consumer) == ("amount", server)
    assert suspect.text == "holds 10 DISK_GB and its flavor asks 0, 1 VCPU and its flavor asks 2"
    assert scene.mend() == ["only its administrator can say which is right"]


def test_dedicated_processors_count_as_processors(scene: Scene) -> None:
    stock = {"PCPU": {"total": 8}, "MEMORY_MB": {"total": 2048}, "DISK_GB": {"total": 100}}
    scene.placement.set_inventory(scene.hosts["one"], stock, scene.placement.inventory(scene.hosts["one"])[1])
    scene.holds(scene.server(), PCPU=2, MEMORY_MB=512, DISK_GB=10)
    assert scene.found() == []


def test_a_server_that_is_gone_by_the_second_look_is_not_said(scene: Scene) -> None:
    server = scene.server()
    cloud = scene.cloud()
    looked = cloud.first(holdings.pages(scene.database))
    del scene.nova.servers[server]
    assert len(looked.suspects) == 1
    assert list(cloud.second(looked.suspects)) == []
