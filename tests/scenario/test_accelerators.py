"""Servers with accelerators in a whole cloud: over the APIs, with an accelerator service of its own beside it."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from kilonova.core import ids
from kilonova.http.server import HttpServer
from tests.http.compute.cloud import until
from tests.scenario.stage import NOTHING, PLACEMENT, Stage, becomes, create, delete, image, stage
from tests.workflows.cyborg import Cyborg

SCHEDULER = "/scheduler"
PROFILE = {"name": "fpga", "groups": [{"resources:FPGA": "1", "trait:COMPUTE_NODE": "forbidden", "accel:id": "b"}]}


@pytest.fixture
def cyborg() -> Cyborg:
    return Cyborg(profiles=[PROFILE])


@pytest.fixture
def here(tmp_path: Path, cyborg: Cyborg) -> Iterator[Stage]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    server = HttpServer(cyborg, "127.0.0.1", port)
    server.start()
    try:
        with stage(tmp_path / "state", config=f"[cyborg]\nendpoint_override = http://127.0.0.1:{port}/v2\n") as made:
            yield made
    finally:
        server.stop()


def flavor(here: Stage, profile: str) -> str:
    body = {"flavor": {"name": f"with-{profile}", "vcpus": 1, "ram": 128, "disk": 1}}
    made = str(here.admin.ok("POST", "/flavors", body)["flavor"]["id"])
    here.admin.ok("POST", f"/flavors/{made}/os-extra_specs", {"extra_specs": {"accel:device_profile": profile}})
    return made


def card(here: Stage, host: str) -> str:
    """A device's provider below a host, as the accelerator service would make it."""
    root = here.provider(host)
    uuid = ids.derived_uuid(root, "card")
    body = {"uuid": uuid, "name": f"{host}_card", "parent_provider_uuid": root}
    version = {"service": PLACEMENT, "OpenStack_API_Version": "placement 1.36"}
    generation = here.admin.ok("POST", "/resource_providers", body, **version)["generation"]
    inventories = {"inventories": {"FPGA": {"total": 1}}, "resource_provider_generation": generation}
    here.admin.ok("PUT", f"/resource_providers/{uuid}/inventories", inventories, **version)
    return uuid


def test_a_server_holds_its_device_until_it_is_deleted_and_another_finds_none(here: Stage, cyborg: Cyborg) -> None:
    device, chosen = card(here, "sim-0002"), flavor(here, "fpga")
    server = create(here.demo, flavorRef=chosen)
    until(lambda: cyborg.binding)
    here.admin.at("2.82").ok("POST", "/os-server-external-events", {"events": cyborg.resolve()})
    becomes(here.demo, server, "ACTIVE")
    assert here.allocations(server)[device]["resources"] == {"FPGA": 1}
    assert [(arq["state"], arq["device_rp_uuid"], arq["hostname"]) for arq in cyborg.arqs.values()] == [
        ("Bound", device, "sim-0002")
    ]
    assert capacity(here, chosen) == 0
    delete(here.demo, server)
    assert (cyborg.arqs, here.left(), capacity(here, chosen)) == ({}, NOTHING, 1)


def test_a_profile_that_is_not_there_is_said_to_the_user_and_nothing_is_made(here: Stage, cyborg: Cyborg) -> None:
    card(here, "sim-0002")
    values = {"name": "s", "flavorRef": flavor(here, "gone"), "imageRef": image(here.demo), "networks": "none"}
    said = here.demo.at("2.37").refused(400, "POST", "/servers", {"server": values})
    assert said == "Device profile gone of the flavor cannot be used: there is none of that name."
    asked = {"capacity": {"flavor": values["flavorRef"]}}
    said = here.admin.refused(400, "POST", "/capacity", asked, service=SCHEDULER)
    assert "Device profile gone" in said
    assert here.demo.get("/servers")["servers"] == []
    assert (cyborg.arqs, here.left()) == ({}, NOTHING)


def test_a_cloud_without_an_accelerator_service_refuses_the_flavor(tmp_path: Path) -> None:
    with stage(tmp_path / "state", hosts=1) as here:
        values = {"name": "s", "flavorRef": flavor(here, "fpga"), "imageRef": image(here.demo), "networks": "none"}
        said = here.demo.at("2.37").refused(400, "POST", "/servers", {"server": values})
    assert said == "Device profile fpga of the flavor cannot be used: this cloud has no accelerator service."


def test_an_accelerator_service_that_is_away_is_said_to_be_as_any_other_is(tmp_path: Path) -> None:
    """Compute's contract has no 503 for it; the scheduler's has."""
    config = "[cyborg]\nendpoint_override = http://127.0.0.1:9/\n"
    with stage(tmp_path / "state", hosts=1, config=config) as here:
        values = {"name": "s", "flavorRef": flavor(here, "fpga"), "imageRef": image(here.demo), "networks": "none"}
        said = here.demo.at("2.37").refused(500, "POST", "/servers", {"server": values})
        assert said.startswith("The accelerator service does not answer: ")
        asked = {"capacity": {"flavor": values["flavorRef"]}}
        assert here.admin.ask("POST", "/capacity", asked, service=SCHEDULER).status == 503
        assert here.demo.get("/servers")["servers"] == []


def capacity(here: Stage, chosen: str) -> int:
    asked = {"capacity": {"flavor": chosen}}
    return int(here.admin.ok("POST", "/capacity", asked, service=SCHEDULER)["capacity"]["fits"])
