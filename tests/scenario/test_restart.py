"""A cloud that is stopped and started again is as it was, wherever it is then."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.databases import Places
from tests.http.compute.cloud import Client
from tests.scenario.stage import (
    NETWORK,
    PLACEMENT,
    VOLUME,
    Stage,
    act,
    becomes,
    boot,
    delete,
    stage,
    volume,
    volume_becomes,
)

VERSION = "2.96"


def furnish(here: Stage) -> dict[str, str]:
    """Two servers (one has a volume and is ACTIVE, one is stopped), a flavor and a key pair."""
    flavor = {"name": "custom", "ram": 128, "vcpus": 1, "disk": 1, "id": "custom"}
    here.admin.ok("POST", "/flavors", {"flavor": flavor})
    demo = here.demo.at(VERSION)
    demo.ok("POST", "/os-keypairs", {"keypair": {"name": "key", "type": "ssh", "public_key": KEY}}, status=201)
    running = boot(demo, name="running", flavorRef="custom", key_name="key", metadata={"a": "b"})["id"]
    disk = volume(demo, name="disk")
    demo.ok("POST", f"/servers/{running}/os-volume_attachments", {"volumeAttachment": {"volumeId": disk}})
    volume_becomes(demo, disk, "in-use")
    off = boot(demo, name="off")["id"]
    act(demo, off, "os-stop")
    becomes(demo, off, "SHUTOFF")
    return {"running": running, "off": off, "disk": disk}


KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIyn7mIiAi91woU2cHSUtBxy4rLmPST7Nod1p51X0tMQ someone"


def seen(here: Stage) -> dict[str, Any]:
    """What a user and an administrator see of the cloud, without addresses of the cloud itself."""
    admin, demo = here.admin.at(VERSION), here.demo.at(VERSION)
    providers = here.placement("/resource_providers")["resource_providers"]
    found = {
        "servers": demo.get("/servers/detail")["servers"],
        "flavors": demo.get("/flavors/detail")["flavors"],
        "keypairs": demo.get("/os-keypairs")["keypairs"],
        "ports": demo.get("/ports", service=NETWORK)["ports"],
        "volumes": demo.get("/volumes/detail", service=VOLUME)["volumes"],
        "hosts": [(row["host"], row["binary"], row["state"]) for row in admin.get("/os-services")["services"]],
        "hypervisors": [row["id"] for row in admin.get("/os-hypervisors")["hypervisors"]],
        "providers": [(row["uuid"], row["name"], row["generation"]) for row in providers],
        "inventories": {
            row["uuid"]: here.placement(f"/resource_providers/{row['uuid']}/inventories")["inventories"]
            for row in providers
        },
        "used": here.used(),
    }
    return dict(without_links(found))


def without_links(value: Any) -> Any:
    """The value without what names the address it was asked at."""
    if isinstance(value, dict):
        return {key: without_links(inner) for key, inner in value.items() if key != "links"}
    if isinstance(value, list):
        return [without_links(inner) for inner in value]
    return value


@pytest.fixture(scope="module")
def lives(tmp_path_factory: pytest.TempPathFactory, places: Places) -> Iterator[dict[str, Any]]:
    """What was seen in a first life; the second, which goes on, at another port."""
    directory = tmp_path_factory.mktemp("restart") / "state"
    with stage(directory, places) as first:
        made = furnish(first)
        before, token, lines = seen(first), first.demo.token, len(first.log())
    with stage(directory, places, port=8775) as second:
        yield {"made": made, "before": before, "token": token, "lines": lines, "here": second}


def test_everything_is_as_it_was(lives: dict[str, Any]) -> None:
    now = seen(lives["here"])
    for what, before in lives["before"].items():
        assert now[what] == before, what


def test_inventories_are_not_sent_again(lives: dict[str, Any]) -> None:
    seen(lives["here"])
    since = lives["here"].log()[lives["lines"] :]
    writes = [line for line in since if '"PUT /placement' in line or '"POST /placement' in line]
    assert writes == []


def test_a_token_of_the_life_before_is_good(lives: dict[str, Any]) -> None:
    old = Client(lives["here"].transport, lives["token"], "", "", VERSION)
    assert len(old.get("/servers")["servers"]) == 2


def test_the_catalogue_says_where_the_cloud_is_now(lives: dict[str, Any]) -> None:
    here: Stage = lives["here"]
    catalogue = here.demo.get("/v3/auth/catalog", service="/identity")["catalog"]
    urls = {endpoint["url"] for service in catalogue for endpoint in service["endpoints"]}
    assert urls
    assert all(url.startswith("http://127.0.0.1:8775/") for url in urls), urls


def test_what_a_server_had_still_works(lives: dict[str, Any]) -> None:
    here, made = lives["here"], lives["made"]
    demo: Client = here.demo.at(VERSION)
    output = demo.ok("POST", f"/servers/{made['running']}/action", {"os-getConsoleOutput": {}})["output"]
    assert "running login:" in output
    act(demo, made["off"], "os-start")
    becomes(demo, made["off"], "ACTIVE")
    demo.ok("DELETE", f"/servers/{made['running']}/os-volume_attachments/{made['disk']}", status=202)
    volume_becomes(demo, made["disk"], "available")
    delete(demo, made["running"], made["off"])
    assert here.used() == {}
    assert demo.status("GET", "/", service=PLACEMENT) == 200
