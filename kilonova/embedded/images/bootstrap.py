"""The images that a new deployment starts with: two empty disks, real as files, with no system on them."""

from __future__ import annotations

import io
import struct

from kilonova.embedded.images.app import new_row
from kilonova.embedded.images.data import fill
from kilonova.embedded.images.records import World
from kilonova.embedded.images.tables import IMAGES

_DESCRIPTION = "A placeholder: an empty disk of {size} MiB without an operating system"
_CLUSTER_BITS = 12

# (name, MiB). Client suites look for a small qcow2 image named cirros-…-disk, and for a second one.
STARTERS = (("cirros-0.6.3-x86_64-disk", 112), ("blank-x86_64-disk", 16))


def bootstrap(world: World, *, owner: str) -> None:
    """Make sure that the starters are there, public and active, owned by the project `owner`."""
    for name, size in STARTERS:
        with world.database.write() as connection:
            row = next(iter(IMAGES.find(connection, {"name": name, "owner": owner})), None)
            if row is None:
                body = {"name": name, "visibility": "public", "disk_format": "qcow2", "container_format": "bare",
                        "description": _DESCRIPTION.format(size=size), "architecture": "x86_64"}  # fmt: skip
                row = new_row(body, owner)
                IMAGES.insert(connection, row)
            # Queued is also what an earlier start leaves that stopped half-way.
            empty = IMAGES.update(connection, {"id": row["id"], "status": "queued"}, {"status": "saving"})
        if empty:
            fill(world, row, io.BytesIO(empty_qcow2(size * 1024 * 1024)))


def empty_qcow2(size: int) -> bytes:
    """An empty disk as a qcow2 file (version 2): header, refcount table, one refcount block, first-level table.

    size: of the disk in bytes, at most 1 GiB (the first-level table is one cluster).
    """
    cluster = 1 << _CLUSTER_BITS
    per_table = cluster // 8 * cluster  # bytes of disk behind one second-level table
    tables = -(-size // per_table)
    values = (b"QFI\xfb", 2, 0, 0, _CLUSTER_BITS, size, 0, tables, 3 * cluster, cluster, 1, 0, 0)
    header = struct.pack(">4sIQIIQIIQQIIQ", *values)
    refcount_table = struct.pack(">Q", 2 * cluster)
    refcounts = struct.pack(">4H", 1, 1, 1, 1)
    return b"".join(part.ljust(cluster, b"\0") for part in (header, refcount_table, refcounts, b""))
