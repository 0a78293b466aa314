"""/servers/{id}/topology: the NUMA cells of a server; where they are on the host, for those who may see that."""

from __future__ import annotations

from typing import Any

from kilonova.api.compute.server_metadata import server_of
from kilonova.compute import topology
from kilonova.core.numa.cpus import members
from kilonova.core.numa.topology import GuestCell
from kilonova.http.fields import Query
from kilonova.http.op import Op, Request

_RULE, _HOST_RULE = "compute:server:topology:index", "compute:server:topology:host:index"


def index(req: Request) -> dict[str, Any]:
    """All cells, none for a server that does not care; the page size is one for all."""
    found = topology.of_server(req.world, req.target)
    if found is None:
        return {"nodes": [], "pagesize_kb": None}
    on_host = req.allowed(_HOST_RULE)
    size = found.cells[0].page_size
    return {
        "nodes": [_node(cell, on_host=on_host) for cell in found.cells],
        "pagesize_kb": size if size is not None and size > 0 else None,
    }


def _node(cell: GuestCell, *, on_host: bool) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "vcpu_set": members(cell.cpuset | cell.pcpuset),
        "siblings": [members(core) for core in cell.siblings],
        "memory_mb": cell.memory_mb,
    }
    if on_host:
        shown["host_node"] = cell.host_cell
        shown["cpu_pinning"] = {str(guest): host for guest, host in cell.pinning}
    return shown


OPS: tuple[Op, ...] = (
    Op("GET", "/servers/{server_id}/topology", index, policy=_RULE, also=(_HOST_RULE,), target=server_of,
       query=Query(strict="2.102"), errors=(404,), since="2.78"),
)  # fmt: skip
