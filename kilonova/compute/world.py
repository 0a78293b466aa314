"""What the use cases and the workflows act on: databases, bus, and the clients of the other services."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from kilonova.bus.bus import Bus
from kilonova.cells.cells import API, Cells
from kilonova.clients.accelerators import Accelerators
from kilonova.clients.identity import Identity
from kilonova.clients.images import Images
from kilonova.clients.network import Network
from kilonova.clients.placement import Placement
from kilonova.clients.volumes import Volumes
from kilonova.compute.settings import ComputeSettings
from kilonova.db import api_schema, cell_schema
from kilonova.db.queries.journal import JournalTables, tables_in
from kilonova.sql.engine import Database

_API_JOURNAL = tables_in(api_schema.metadata)
_CELL_JOURNAL = tables_in(cell_schema.metadata)


@dataclass(frozen=True)
class World:
    """One object per process, handed to use cases, steps and reconcilers. `agent_of` finds the agent of a host."""

    cells: Cells
    bus: Bus
    settings: ComputeSettings
    images: Images
    network: Network
    volumes: Volumes
    placement: Placement
    identity: Identity
    accelerators: Accelerators
    agent_of: Callable[[str], Any]
    journals: tuple[str, ...] | None = None  # whose workflows this process runs; None: every database's

    def databases(self) -> Sequence[str]:
        """Names of the databases whose journals this process works on."""
        return self.cells.names() if self.journals is None else self.journals

    def database(self, name: str) -> tuple[Database, JournalTables]:
        """A database and its journal's tables."""
        return self.cells.database(name), _API_JOURNAL if name == API else _CELL_JOURNAL
