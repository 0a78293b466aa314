"""Requests that are well formed and cannot be: the right code, and nothing is left of them anywhere."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.http.bad_input.services import UNKNOWN
from tests.http.compute.cloud import Client, remove, until


def traces(client: Client) -> dict[str, list[str]]:
    """The ids of all that a request for a server may leave behind in a project."""
    own = f"project_id={client.project}"
    found = {
        "servers": client.get("/servers")["servers"],
        "ports": client.get(f"/v2.0/ports?{own}", service="/networking")["ports"],
        "volumes": client.get("/v3/volumes", service="/volume")["volumes"],
        "attachments": client.get(
            "/v3/attachments", service="/volume", OpenStack_API_Version="volume 3.54"
        )["attachments"],
        "groups": client.get("/os-server-groups")["server_groups"],
    }  # fmt: skip
    used = client.get("/limits")["limits"]["absolute"]
    return {name: sorted(row["id"] for row in rows) for name, rows in found.items()} | {
        "used": [str(used[f"total{what}Used"]) for what in ("Instances", "Cores", "RAM")],
    }


@pytest.fixture(scope="module")
def things(demo: Client, alt: Client, admin: Client) -> Iterator[dict[str, str]]:
    """Things that a bad request may name: of another project, not fit, disabled, private, in use."""
    def made(client: Client, service: str, path: str, body: dict[str, Any]) -> str:
        answer = client.ok("POST", path, body, service=service)
        return str(answer["id"] if "id" in answer else next(iter(answer.values()))["id"])

    compute = "/compute/v2.1"
    found = {
        "image": demo.get("/v2/images?status=active", service="/image")["images"][0]["id"],
        "their_image": made(alt, "/image", "/v2/images", {"name": "i", "visibility": "private"}),
        "queued_image": made(demo, "/image", "/v2/images", {"name": "i"}),
        "their_network": made(alt, "/networking", "/v2.0/networks", {"network": {"name": "n"}}),
        "bare_network": made(demo, "/networking", "/v2.0/networks", {"network": {"name": "bare"}}),
        "their_volume": made(alt, "/volume", "/v3/volumes", {"volume": {"size": 1}}),
        "blank_volume": made(demo, "/volume", "/v3/volumes", {"volume": {"size": 1}}),
        "their_group": made(
            alt, compute, "/os-server-groups", {"server_group": {"name": "g", "policies": ["affinity"]}}),
        "private_flavor": made(admin, compute, "/flavors", {"flavor": {
            "name": "private", "ram": 64, "vcpus": 1, "disk": 1, "os-flavor-access:is_public": False}}),
        "no_disk": made(admin, compute, "/flavors", {"flavor": {"name": "no-disk", "ram": 64, "vcpus": 1, "disk": 0}}),
        "public": next(
            network["id"] for network in demo.get("/v2.0/networks", service="/networking")["networks"]
            if network["router:external"]
        ),
        "private": next(
            network["id"] for network in demo.get("/v2.0/networks", service="/networking")["networks"]
            if network["name"] == "private"
        ),
    }  # fmt: skip
    yield found
    for flavor in ("private_flavor", "no_disk"):
        admin.ok("DELETE", f"/flavors/{found[flavor]}", status=202)


BAD_SERVERS: dict[str, tuple[int, dict[str, Any]]] = {
    "unknown flavor": (400, {"flavorRef": "nope"}),
    "another project's flavor": (400, {"flavorRef": "{private_flavor}"}),
    "flavor by path": (400, {"flavorRef": "../../flavors/nope"}),
    "flavor without a disk": (403, {"flavorRef": "{no_disk}"}),
    "unknown image": (400, {"imageRef": UNKNOWN}),
    "another project's image": (400, {"imageRef": "{their_image}"}),
    "image without data": (400, {"imageRef": "{queued_image}"}),
    "no image": (400, {"imageRef": ""}),
    "unknown network": (400, {"networks": [{"uuid": UNKNOWN}]}),
    "another project's network": (400, {"networks": [{"uuid": "{their_network}"}]}),
    "network without a subnet": (400, {"networks": [{"uuid": "{bare_network}"}]}),
    "external network": (403, {"networks": [{"uuid": "{public}"}]}),
    "unknown port": (400, {"networks": [{"port": UNKNOWN}]}),
    "one port twice": (400, {"networks": [{"port": UNKNOWN}, {"port": UNKNOWN}]}),
    "address of another network": (400, {"networks": [{"uuid": "{private}", "fixed_ip": "127.9.9.9"}]}),
    "a network that is nothing": (400, {"networks": [{}]}),
    "second network unknown": (400, {"networks": [{"uuid": "{private}"}, {"uuid": UNKNOWN}]}),
    "one address for several": (400, {"networks": [{"uuid": "{private}", "fixed_ip": "127.100.0.99"}], "max_count": 2}),
    "unknown group": (400, {"security_groups": [{"name": "nope"}], "networks": [{"uuid": "{private}"}]}),
    "unknown key": (400, {"key_name": "nope"}),
    "unknown zone": (400, {"availability_zone": "nope"}),
    "zone with a host": (403, {"availability_zone": "nova:sim-0001"}),
    "zone with too many parts": (400, {"availability_zone": "a:b:c:d"}),
    "fewer than none": (400, {"min_count": 3, "max_count": 2}),
    "too many": (403, {"min_count": 10_000}),
    "too much metadata": (403, {"metadata": {f"k{number}": "v" for number in range(500)}}),
    "unknown volume": (400, {"imageRef": "", "block_device_mapping_v2": [
        {"uuid": UNKNOWN, "source_type": "volume", "destination_type": "volume", "boot_index": 0}]}),
    "another project's volume": (400, {"imageRef": "", "block_device_mapping_v2": [
        {"uuid": "{their_volume}", "source_type": "volume", "destination_type": "volume", "boot_index": 0}]}),
    "volume that cannot boot": (400, {"imageRef": "", "block_device_mapping_v2": [
        {"uuid": "{blank_volume}", "source_type": "volume", "destination_type": "volume", "boot_index": 0}]}),
    "image to a volume of no size": (400, {"imageRef": "", "block_device_mapping_v2": [
        {"uuid": "{image}", "source_type": "image", "destination_type": "volume", "boot_index": 0}]}),
    "second device unknown": (400, {"block_device_mapping_v2": [
        {"uuid": "{image}", "source_type": "image", "destination_type": "local", "boot_index": 0},
        {"uuid": UNKNOWN, "source_type": "volume", "destination_type": "volume", "boot_index": 1}]}),
    "two first devices": (400, {"block_device_mapping_v2": [
        {"uuid": "{image}", "source_type": "image", "destination_type": "local", "boot_index": 0},
        {"source_type": "blank", "destination_type": "volume", "volume_size": 1, "boot_index": 0}]}),
    "both forms of devices": (400, {"block_device_mapping": [{}], "block_device_mapping_v2": [{}]}),
}  # fmt: skip


def filled(value: Any, things: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: filled(inner, things) for key, inner in value.items()}
    if isinstance(value, list):
        return [filled(inner, things) for inner in value]
    return things.get(value[1:-1], value) if isinstance(value, str) and value.startswith("{") else value


@pytest.mark.parametrize("name", BAD_SERVERS)
def test_a_server_that_cannot_be_leaves_nothing(name: str, things: dict[str, str], demo: Client, alt: Client) -> None:
    status, values = BAD_SERVERS[name]
    before = traces(demo), traces(alt)
    server = {"name": "s", "flavorRef": "42", "imageRef": things["image"], "networks": "none"} | filled(values, things)
    message = demo.at("2.60").refused(status, "POST", "/servers", {"server": server})
    assert len(message) > 10
    assert (traces(demo), traces(alt)) == before


@pytest.mark.parametrize("hint", ["group", "same_host", "different_host"])
def test_a_hint_that_names_nothing_of_the_callers_leaves_nothing(
    hint: str, things: dict[str, str], demo: Client
) -> None:
    before = traces(demo)
    server = {"name": "s", "flavorRef": "42", "imageRef": things["image"], "networks": "none"}
    body = {"server": server, "os:scheduler_hints": {hint: things["their_group"]}}
    answer = demo.at("2.60").ask("POST", "/servers", body)
    if hint == "group":
        assert answer.status == 400
    elif answer.status == 202:  # the scheduler ignores servers that are not there
        made = answer.body["server"]["id"]
        until(lambda: demo.get(f"/servers/{made}")["server"]["status"] != "BUILD")
        remove(demo, made)
    until(lambda: traces(demo) == before)


# -- names and paths -------------------------------------------------------------------------------------------------

TRAVERSALS = (
    "../../../outside", "/outside", "..", ".", "a/../../outside", "C:\\outside", "~/outside", "outside\n",
    "%2e%2e%2foutside",
)  # fmt: skip


@pytest.mark.parametrize("name", TRAVERSALS)
def test_an_images_name_is_no_path(name: str, demo: Client, tmp_path_factory: pytest.TempPathFactory) -> None:
    root = tmp_path_factory.getbasetemp()
    before = set(root.rglob("*outside*"))
    body = {"name": name, "disk_format": "raw", "container_format": "bare"}
    image = demo.ok("POST", "/v2/images", body, service="/image")
    assert image["name"] == name
    headers = {"X-Auth-Token": demo.token, "Content-Type": "application/octet-stream"}
    url = f"http://127.0.0.1:8774/image/v2/images/{image['id']}/file"
    assert demo.transport.send("PUT", url, headers, b"bytes")[0] == 204
    assert set(root.rglob("*outside*")) == before
    assert [path.name for path in root.rglob("*") if path.is_file() and image["id"] in path.name] != []
    assert demo.status("DELETE", f"/v2/images/{image['id']}", service="/image") == 204
    assert [path for path in root.rglob("*") if image["id"] in path.name] == []


@pytest.mark.parametrize("identifier", ["../../etc/passwd", "..", "", "x", "/etc/x", UNKNOWN + "/..", UNKNOWN + "\0"])
def test_an_images_id_is_a_uuid(identifier: str, demo: Client) -> None:
    assert demo.status("POST", "/v2/images", {"id": identifier, "name": "i"}, service="/image") == 400


@pytest.mark.parametrize("identifier", ["../x", "a/b", " a", "a ", "", "x" * 256, "ä", "a\0b"])
def test_a_flavors_id_is_a_plain_word(identifier: str, admin: Client) -> None:
    flavor = {"name": "odd", "id": identifier, "ram": 64, "vcpus": 1, "disk": 1}
    admin.refused(400, "POST", "/flavors", {"flavor": flavor})
    assert "odd" not in [one["name"] for one in admin.get("/flavors?is_public=none")["flavors"]]


def test_a_key_that_is_none_is_refused_and_kept_nowhere(demo: Client) -> None:
    private = "-----BEGIN RSA PRIVATE KEY-----"
    for key in ("", "ssh-rsa", "ssh-rsa AAAA", "ssh-rsa " + "A" * 30_000, private, "\0", "ssh-rsa é"):
        demo.refused(400, "POST", "/os-keypairs", {"keypair": {"name": "k", "public_key": key}})
    demo.refused(404, "GET", "/os-keypairs/k")


@pytest.mark.parametrize("data", ["*", "YWJ", "YQ==" * 20_000])
def test_user_data_that_is_no_base64_or_too_long_is_refused(data: str, things: dict[str, str], demo: Client) -> None:
    server = {"name": "s", "flavorRef": "42", "imageRef": things["image"], "networks": "none", "user_data": data}
    demo.at("2.60").refused(400, "POST", "/servers", {"server": server})


# -- legacy /v2 ------------------------------------------------------------------------------------------------------


def test_the_legacy_api_drops_what_it_does_not_know(things: dict[str, str], demo: Client) -> None:
    server = {
        "name": "  spaced  ", "flavorRef": "42", "imageRef": things["image"], "networks": [{"uuid": things["private"]}],
        "unknown": 1, "description": "later", "user_data": None,
    }  # fmt: skip
    made = demo.ok("POST", "/servers?nonsense=1", {"server": server, "other": 2}, service="/compute/v2", status=202)
    found = until(lambda: _built(demo, made["server"]["id"]))
    assert (found["name"], found["description"]) == ("spaced", "spaced")
    answer = demo.ask("GET", "/servers", service="/compute/v2", OpenStack_API_Version="compute 2.104")
    assert "openstack-api-version" not in answer.headers
    assert "vary" not in answer.headers
    remove(demo, found["id"])


def _built(client: Client, server: str) -> dict[str, Any] | None:
    found: dict[str, Any] = client.at("2.19").get(f"/servers/{server}")["server"]
    return found if found["status"] == "ACTIVE" else None
