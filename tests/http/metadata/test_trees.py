"""What guests read: the tree of EC2 and that of OpenStack, at each version."""

from __future__ import annotations

import base64

import pytest

from tests.http.metadata.conftest import KEY, USER_DATA, VENDOR, Guest, Place

EC2_FIRST = [
    "ami-id", "ami-launch-index", "ami-manifest-path", "hostname", "instance-id", "local-ipv4", "public-keys/",
    "reservation-id", "security-groups",
]  # fmt: skip


def address(guest: Guest) -> str:
    (found,) = guest.server["addresses"]["private"]
    return str(found["addr"])


def test_the_root_lists_the_versions_of_ec2_to_anybody(place: Place, guest: Guest) -> None:
    answer = guest.ask("", X_Instance_ID="")
    assert answer.status == 200
    assert answer.body.decode().split("\n") == [
        "1.0", "2007-01-19", "2007-03-01", "2007-08-29", "2007-10-10", "2007-12-15", "2008-02-01", "2008-09-01",
        "2009-04-04", "latest",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("version", "added"),
    [
        ("1.0", []),
        ("2007-01-19", ["local-hostname", "public-hostname", "public-ipv4"]),
        ("2007-08-29", ["local-hostname", "public-hostname", "public-ipv4", "instance-type"]),
        ("2007-12-15", ["local-hostname", "public-hostname", "public-ipv4", "instance-type", "block-device-mapping/"]),
        ("latest", ["local-hostname", "public-hostname", "public-ipv4", "instance-type", "block-device-mapping/",
                    "placement/", "instance-action"]),
    ],
)  # fmt: skip
def test_each_version_of_ec2_has_the_files_of_its_time(guest: Guest, version: str, added: list[str]) -> None:
    assert guest.lines(f"/{version}/") == ["meta-data/", "user-data"]
    assert guest.lines(f"/{version}/meta-data/") == sorted([*EC2_FIRST, *added])


def test_every_file_of_ec2_says_what_the_server_is(guest: Guest) -> None:
    uuid = guest.server["id"].replace("-", "")
    assert {name: guest.get(f"/latest/meta-data/{name}").decode() for name in (
        "ami-launch-index", "hostname", "local-hostname", "public-hostname", "instance-id", "local-ipv4",
        "public-ipv4", "reservation-id", "security-groups", "instance-type", "instance-action",
        "placement/availability-zone", "public-keys/0/openssh-key", "block-device-mapping/root",
        "block-device-mapping/ami",
    )} == {
        "ami-launch-index": "0", "hostname": "web-server.novalocal", "local-hostname": "web-server.novalocal",
        "public-hostname": "web-server.novalocal", "instance-id": f"i-{uuid[:17]}", "local-ipv4": address(guest),
        "public-ipv4": "", "reservation-id": guest.get("/1.0/meta-data/reservation-id").decode(),
        "security-groups": "default", "instance-type": "m1.nano", "instance-action": "none",
        "placement/availability-zone": "nova", "public-keys/0/openssh-key": KEY,
        "block-device-mapping/root": "/dev/vda", "block-device-mapping/ami": "vda",
    }  # fmt: skip
    assert guest.get("/latest/meta-data/ami-id").decode() == "ami-" + guest.server["image"]["id"].replace("-", "")[:17]


def test_a_directory_of_keys_lists_their_names(guest: Guest) -> None:
    assert guest.lines("/latest/meta-data/public-keys/") == ["0=mine"]
    assert guest.lines("/latest/meta-data/public-keys/0/") == ["openssh-key"]


def test_user_data_come_back_as_the_bytes_that_they_were(guest: Guest) -> None:
    assert guest.get("/latest/user-data") == USER_DATA
    assert guest.get("/openstack/latest/user_data") == USER_DATA


@pytest.mark.parametrize(
    ("version", "files"),
    [
        ("2012-08-10", ["meta_data.json", "user_data"]),
        ("2013-04-04", ["meta_data.json", "user_data", "password"]),
        ("2013-10-17", ["meta_data.json", "user_data", "password", "vendor_data.json"]),
        ("2016-06-30", ["meta_data.json", "user_data", "password", "vendor_data.json", "network_data.json"]),
        ("latest", ["meta_data.json", "user_data", "password", "vendor_data.json", "network_data.json",
                    "vendor_data2.json"]),
    ],
)  # fmt: skip
def test_each_version_of_openstack_has_the_files_of_its_time(guest: Guest, version: str, files: list[str]) -> None:
    assert version in guest.lines("/openstack")
    assert guest.lines(f"/openstack/{version}/") == files


def test_meta_data_are_those_of_the_server(guest: Guest) -> None:
    document = guest.json("/openstack/latest/meta_data.json")
    assert len(base64.b64decode(document.pop("random_seed"))) == 512
    (device,) = document.pop("devices")
    assert (device["type"], device["tags"]) == ("nic", ["front"])
    assert document == {
        "uuid": guest.server["id"], "meta": {"role": "web"}, "hostname": "web-server.novalocal", "name": "Web Server",
        "files": [{"path": "/etc/motd", "content_path": "/content/0000"}], "launch_index": 0,
        "availability_zone": "nova", "public_keys": {"mine": KEY},
        "keys": [{"name": "mine", "type": "ssh", "data": KEY}], "project_id": guest.project, "dedicated_cpus": [],
    }  # fmt: skip
    first = guest.json("/openstack/2012-08-10/meta_data.json")
    assert {"random_seed", "project_id", "devices", "dedicated_cpus"} & first.keys() == set()
    assert guest.get("/openstack/content/0000") == b"hello"


def test_network_data_name_each_interface_and_how_it_gets_its_address(guest: Guest) -> None:
    document = guest.json("/openstack/latest/network_data.json")
    (link,), (network,) = document["links"], document["networks"]
    assert link["ethernet_mac_address"].count(":") == 5
    assert network | {"network_id": ""} == {
        "id": "network0", "type": "ipv4_dhcp", "link": link["id"], "network_id": "",
    }  # fmt: skip


def test_vendor_data_are_those_of_the_file(guest: Guest) -> None:
    assert guest.json("/openstack/latest/vendor_data.json") == VENDOR
    assert guest.json("/openstack/latest/vendor_data2.json") == {"static": VENDOR}


def test_what_a_server_does_not_have_is_not_there(place: Place) -> None:
    plain = place.guest()
    assert plain.lines("/latest") == ["meta-data/"]
    assert "public-keys/" not in plain.lines("/latest/meta-data")
    assert "user_data" not in plain.lines("/openstack/latest")
    assert plain.json("/openstack/latest/meta_data.json").keys() & {"keys", "public_keys", "files", "meta"} == set()
    for path in ("/latest/user-data", "/openstack/latest/user_data", "/openstack/content/0000"):
        assert plain.ask(path).status == 404


@pytest.mark.parametrize(
    "path",
    [
        "/2030-01-01", "/latest/meta-data/none", "/latest/meta-data/hostname/more", "/latest/meta-data/public-keys/1",
        "/openstack/2030-01-01", "/openstack/latest/none", "/openstack/latest/meta_data.json/more",
        "/openstack/2012-08-10/password", "/openstack/content", "/openstack/content/0001", "/latest/../latest",
    ],
)  # fmt: skip
def test_a_path_that_leads_nowhere_is_not_found(guest: Guest, path: str) -> None:
    assert guest.ask(path).status == 404
