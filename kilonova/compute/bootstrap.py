"""What a new cloud has in the API database: the usual flavors, cell0 and one cell."""

from __future__ import annotations

from typing import Final

from kilonova.cells.cells import CELL0
from kilonova.core import ids
from kilonova.db.queries import cell_mappings, flavors
from kilonova.sql.engine import Database

# name, id, memory MiB, root disk GiB, vCPUs
FLAVORS: Final = (
    ("m1.tiny", "1", 512, 1, 1),
    ("m1.small", "2", 2048, 20, 1),
    ("m1.medium", "3", 4096, 40, 2),
    ("m1.large", "4", 8192, 80, 4),
    ("m1.xlarge", "5", 16384, 160, 8),
    ("m1.nano", "42", 192, 1, 1),
    ("m1.micro", "84", 256, 1, 1),
)


def bootstrap_flavors(api: Database) -> None:
    """The usual flavors, once: an operator who deletes one does not get it back."""
    if flavors.any_ever(api):
        return
    with api.write() as connection:
        for name, flavorid, memory_mb, root_gb, vcpus in FLAVORS:
            flavors.insert(
                connection,
                {"name": name, "flavorid": flavorid, "memory_mb": memory_mb, "root_gb": root_gb, "vcpus": vcpus},
            )


def bootstrap_cells(api: Database, cell0_url: str, cell1_url: str, transport_url: str) -> str:
    """cell0 and cell1 in the registry, their addresses up to date. Answers cell1's uuid."""
    cell_mappings.ensure(api, CELL0, "cell0", "none:///", cell0_url)
    known = {row.name: row.uuid for row in cell_mappings.every(api)}
    uuid = known.get("cell1") or ids.new_uuid()
    cell_mappings.ensure(api, uuid, "cell1", transport_url, cell1_url)
    return uuid
