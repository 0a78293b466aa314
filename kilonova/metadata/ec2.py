"""The tree of EC2's instance metadata: `<version>/meta-data/…` and `<version>/user-data` (workflow facts 13)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from kilonova.compute import guest_data
from kilonova.metadata.reading import LATEST, Reading, listing

VERSIONS = (
    "1.0", "2007-01-19", "2007-03-01", "2007-08-29", "2007-10-10", "2007-12-15", "2008-02-01", "2008-09-01",
    "2009-04-04",
)  # fmt: skip

Tree = dict[str, Any]
"""Name to a directory (a Tree) or to a function that answers a file's text.

A name `0=label` is listed like that and found as `0`.
"""


def _always(reading: Reading) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Row:
    """A file of `meta-data/`. entries: in the place of value, for a directory whose names differ between servers."""

    path: str
    since: str
    value: Callable[[Reading], str] | None = None
    entries: Callable[[Reading], Tree] | None = None
    present: Callable[[Reading], bool] = _always


def _identifier(prefix: str, uuid: str) -> str:
    """A UUID in the form of EC2's long ids: a prefix and 17 hex digits."""
    return f"{prefix}-{uuid.replace('-', '')[:17]}" if uuid else ""


def _first(reading: Reading, kind: str) -> str:
    return next((str(entry["address"]) for entry in reading.addresses(kind) if entry["version"] == 4), "")


def _keys(reading: Reading) -> Tree:
    server = reading.server
    return {f"0={server.key_name}": {"openssh-key": lambda: server.key_data}} if server.key_data else {}


def _block_devices(reading: Reading) -> Tree:
    """`ami` and `root` are the root disk, `ebs0` … volumes, `ephemeral0` … and `swap` local disks."""
    root = reading.server.root_device_name or "/dev/vda"
    found = {"ami": root.removeprefix("/dev/"), "root": root}
    counts = {"ebs": 0, "ephemeral": 0}
    for device in reading.data.devices:
        if device.no_device or not device.device_name or (device.boot_index == 0 and device.source_type != "volume"):
            continue
        if device.guest_format == "swap":
            found["swap"] = device.device_name
            continue
        kind = "ebs" if device.destination_type == "volume" else "ephemeral"
        found[f"{kind}{counts[kind]}"] = device.device_name
        counts[kind] += 1
    return {name: partial(str, path) for name, path in found.items()}


ROWS = (
    Row("ami-id", "1.0", lambda r: _identifier("ami", r.server.image_ref)),
    Row("ami-launch-index", "1.0", lambda r: str(r.server.launch_index)),
    Row("ami-manifest-path", "1.0", lambda r: "(unknown)"),
    Row("instance-id", "1.0", lambda r: _identifier("i", r.server.uuid)),
    Row("hostname", "1.0", lambda r: r.hostname),
    Row("local-ipv4", "1.0", lambda r: _first(r, "fixed_ips")),
    Row("reservation-id", "1.0", lambda r: r.server.reservation_id),
    Row("security-groups", "1.0", lambda r: "\n".join(guest_data.security_groups_of(r.world, r.data))),
    Row("public-keys", "1.0", entries=_keys, present=lambda r: bool(r.server.key_data)),
    Row("local-hostname", "2007-01-19", lambda r: r.hostname),
    Row("public-hostname", "2007-01-19", lambda r: r.hostname),
    Row("public-ipv4", "2007-01-19", lambda r: _first(r, "floating_ips")),
    Row("instance-type", "2007-08-29", lambda r: str(r.server.flavor["name"])),
    Row("block-device-mapping", "2007-12-15", entries=_block_devices),
    Row("kernel-id", "2007-12-15", lambda r: _identifier("aki", r.server.kernel_id),
        present=lambda r: bool(r.server.kernel_id)),
    Row("ramdisk-id", "2007-12-15", lambda r: _identifier("ari", r.server.ramdisk_id),
        present=lambda r: bool(r.server.ramdisk_id)),
    Row("placement/availability-zone", "2008-02-01", lambda r: r.data.zone or ""),
    Row("instance-action", "2008-09-01", lambda r: "none"),
)  # fmt: skip


def read(reading: Reading, segments: Sequence[str]) -> bytes | None:
    """A file, or a directory's names; None where there is nothing. segments: the path, a version first."""
    version = VERSIONS[-1] if segments[0] == LATEST else segments[0]
    if version not in VERSIONS:
        return None
    user_data = reading.data.user_data
    if list(segments[1:]) == ["user-data"]:
        return user_data
    tree: Tree = {"meta-data": _meta_data(reading, version)}
    if user_data is not None:
        tree["user-data"] = bytes
    return _walk(tree, segments[1:])


def _meta_data(reading: Reading, version: str) -> Tree:
    tree: Tree = {}
    for row in ROWS:
        if row.since > version or not row.present(reading):
            continue
        *above, name = row.path.split("/")
        folder = tree
        for part in above:
            folder = folder.setdefault(part, {})
        folder[name] = row.entries(reading) if row.entries else partial(_text, row, reading)
    return tree


def _text(row: Row, reading: Reading) -> str:
    assert row.value is not None
    return row.value(reading)


def _walk(node: Any, segments: Sequence[str]) -> bytes | None:
    for segment in segments:
        if not isinstance(node, dict):
            return None
        node = next((child for name, child in node.items() if name.partition("=")[0] == segment), None)
    if node is None:
        return None
    if isinstance(node, dict):
        return listing(sorted(_listed(name, child) for name, child in node.items()))
    return str(node()).encode()


def _listed(name: str, child: Any) -> str:
    return f"{name}/" if isinstance(child, dict) and "=" not in name else name
