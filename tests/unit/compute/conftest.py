"""Use cases over databases of their own, without services around them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kilonova.bus.local import LocalBus
from kilonova.cells.cells import Cells
from kilonova.compute.bootstrap import bootstrap_cells
from kilonova.compute.settings import ComputeSettings
from kilonova.compute.world import World
from kilonova.core import ids
from kilonova.db import api_schema, cell_schema
from kilonova.db.queries import cell_mappings, hosts
from kilonova.db.queries.services import register_own
from kilonova.sql.engine import Database
from tests.databases import Shared

NODE = {
    "hypervisor_hostname": "here", "hypervisor_type": "fake", "hypervisor_version": 1, "host_ip": None, "vcpus": 4,
    "memory_mb": 4096, "local_gb": 40, "vcpus_used": 0, "memory_mb_used": 0, "local_gb_used": 0, "free_ram_mb": 4096,
    "free_disk_gb": 40, "disk_available_least": None, "running_vms": 0, "cpu_info": "{}", "supported_instances": "[]",
    "stats": "{}", "cpu_allocation_ratio": 4.0, "ram_allocation_ratio": 1.0, "disk_allocation_ratio": 1.0,
}  # fmt: skip


@pytest.fixture
def world(shared: Shared, kind: str, tmp_path: Path) -> Iterator[World]:
    """cell1 with the host `here`; cell2 with the host `there`, whose database is gone."""
    api = shared.empty(kind, "api", api_schema.metadata)
    database = shared.empty(kind, "cell", cell_schema.metadata)
    gone = f"sqlite:///{tmp_path}/gone/cell2.db" if kind == "sqlite" else "postgresql://u:p@127.0.0.1:1/cell2"
    cell1 = bootstrap_cells(api, f"sqlite:///{tmp_path}/cell0.db", "cell1", "local:///")
    cell2 = ids.new_uuid()
    cell_mappings.ensure(api, cell2, "cell2", "local:///", gone)
    cells = Cells(api, lambda url: database if url == "cell1" else Database(url))
    hosts.register(database, "agent", 1, 74, [NODE | {"host": "here", "uuid": ids.new_uuid()}])
    register_own(database, "controller", {"nova-osapi_compute": "api", "nova-conductor": "conductor"}, 74)
    hosts.map_hosts(api, cell1, ["here"])
    hosts.map_hosts(api, cell2, ["there"])
    nothing: Any = None
    yield World(cells, LocalBus(), ComputeSettings(), *(nothing,) * 6, lambda host: None)
    cells.close()
