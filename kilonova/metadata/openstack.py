"""The tree `openstack/<version>/…`: a directory of files, most of them JSON (workflow facts 13)."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from kilonova.compute import guest_data
from kilonova.core import json
from kilonova.metadata.network_data import network_data
from kilonova.metadata.reading import LATEST, Reading, listing

VERSIONS = (
    "2012-08-10", "2013-04-04", "2013-10-17", "2015-10-15", "2016-06-30", "2016-10-06", "2017-02-22", "2018-08-27",
    "2020-10-14", "2025-04-04",
)  # fmt: skip
PASSWORD, CONTENT = "password", "content"

JSON, TEXT, BYTES = "application/json", "text/plain; charset=UTF-8", "application/octet-stream"


@dataclass(frozen=True, slots=True)
class File:
    """A file of a version's directory; content answers None where a server has none."""

    name: str
    since: str
    kind: str
    content: Callable[[Reading, str], bytes | None]


@dataclass(frozen=True, slots=True)
class Key:
    """A key of meta_data.json, left out where its value is None."""

    name: str
    since: str
    value: Callable[[Reading, str], Any]


def _files(reading: Reading, version: str) -> list[dict[str, str]] | None:
    return [
        {"path": path, "content_path": f"/{CONTENT}/{index:04}"} for index, (path, _) in enumerate(reading.data.files)
    ] or None


def _public_keys(reading: Reading, version: str) -> dict[str, str] | None:
    server = reading.server
    return {server.key_name: server.key_data} if server.key_name and server.key_data else None


def _keys(reading: Reading, version: str) -> list[dict[str, str]] | None:
    server = reading.server
    if not (server.key_name and server.key_data):
        return None
    kind = next((key["type"] for key in reading.data.extra.keypairs if key.get("name") == server.key_name), "ssh")
    return [{"name": server.key_name, "type": kind, "data": server.key_data}]


def _devices(reading: Reading, version: str) -> list[dict[str, Any]]:
    """Interfaces and disks that the user tagged. Where they are on the guest's buses only its hypervisor knows."""
    place = {"bus": "none", "address": "none"}
    found = []
    for vif in reading.server.network_info:
        if vif.get("tag"):
            nic = {"type": "nic", **place, "mac": vif["mac"], "tags": [vif["tag"]]}
            found.append(nic | ({"vf_trusted": False} if version >= "2018-08-27" else {}))
    for device in reading.data.devices:
        if device.tag:
            disk = {"type": "disk", **place, "path": device.device_name, "tags": [device.tag]}
            found.append(disk | ({"serial": device.volume_id} if device.volume_id else {}))
    return found


KEYS = (
    Key("uuid", "2012-08-10", lambda r, v: r.server.uuid),
    Key("meta", "2012-08-10", lambda r, v: r.server.metadata or None),
    Key("files", "2012-08-10", _files),
    Key("hostname", "2012-08-10", lambda r, v: r.hostname),
    Key("name", "2012-08-10", lambda r, v: r.server.display_name),
    Key("launch_index", "2012-08-10", lambda r, v: r.server.launch_index),
    Key("availability_zone", "2012-08-10", lambda r, v: r.data.zone or ""),
    Key("public_keys", "2012-08-10", _public_keys),
    Key("keys", "2012-08-10", _keys),
    Key("random_seed", "2013-04-04", lambda r, v: base64.b64encode(r.data.random_seed).decode()),
    Key("project_id", "2015-10-15", lambda r, v: r.server.project_id),
    Key("devices", "2016-06-30", _devices),
    Key("dedicated_cpus", "2020-10-14", lambda r, v: []),  # no driver of ours pins processors
)


def _meta_data(reading: Reading, version: str) -> bytes:
    document = {key.name: key.value(reading, version) for key in KEYS if key.since <= version}
    return json.dumps({name: value for name, value in document.items() if value is not None})


def _network_data(reading: Reading, version: str) -> bytes:
    return json.dumps(network_data(reading.server.network_info, guest_data.subnets_of(reading.world, reading.data)))


def _vendor_data(reading: Reading, version: str) -> bytes:
    return json.dumps(reading.settings.static or {})


def _vendor_data2(reading: Reading, version: str) -> bytes:
    static = reading.settings.static
    return json.dumps({} if static is None else {"static": static})


FILES = (
    File("meta_data.json", "2012-08-10", JSON, _meta_data),
    File("user_data", "2012-08-10", BYTES, lambda r, v: r.data.user_data),
    File(PASSWORD, "2013-04-04", TEXT, lambda r, v: r.data.password.encode()),
    File("vendor_data.json", "2013-10-17", JSON, _vendor_data),
    File("network_data.json", "2015-10-15", JSON, _network_data),
    File("vendor_data2.json", "2016-10-06", JSON, _vendor_data2),
)


def is_password(segments: Sequence[str]) -> bool:
    """Whether a path (without `openstack`) is that of the password, which may be written."""
    return len(segments) == 2 and segments[1] == PASSWORD and _version(segments[0]) >= "2013-04-04"


def read(reading: Reading, segments: Sequence[str]) -> tuple[bytes, str] | None:
    """A file with its content type, or a directory's names; None where there is nothing. Without `openstack`."""
    if not segments:
        return listing([*VERSIONS, LATEST]), TEXT
    if segments[0] == CONTENT:
        return _content(reading, segments[1:])
    version = _version(segments[0])
    files = [file for file in FILES if version and file.since <= version]
    if len(segments) == 1 and files:
        there = [file.name for file in files if file.name != "user_data" or reading.data.user_data is not None]
        return listing(there), TEXT
    file = next((file for file in files if [file.name] == list(segments[1:])), None)
    content = None if file is None else file.content(reading, version)
    return None if file is None or content is None else (content, file.kind)


def _version(name: str) -> str:
    """The version that a name means, empty for one that is none."""
    if name == LATEST:
        return VERSIONS[-1]
    return name if name in VERSIONS else ""


def _content(reading: Reading, segments: Sequence[str]) -> tuple[bytes, str] | None:
    found = {f"{index:04}": content for index, (_, content) in enumerate(reading.data.files)}
    content = found.get(segments[0]) if len(segments) == 1 else None
    return None if content is None else (content, BYTES)
