"""The databases of a deployment: the API database and one per cell, by name.

Reads the cell registry; knows no noun but the cell.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from kilonova.core.errors import KilonovaError
from kilonova.db import api_schema, cell_schema
from kilonova.db.queries import cell_mappings
from kilonova.sql.engine import Database

API = "api"
CELL0 = "00000000-0000-0000-0000-000000000000"
"""The cell of the servers that never got a host."""


class CellUnknown(KilonovaError):
    """A row names a cell that the registry does not have."""

    code, message = "cell_unknown", "There is no cell {cell}."


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell: its registry row and its database."""

    uuid: str
    name: str | None
    disabled: bool
    database: Database


class Cells:
    """Opens the databases that the registry names and keeps them open."""

    def __init__(self, api: Database, open_database: Callable[[str], Database] = Database) -> None:
        self.api = api
        self._open = open_database
        self._lock = threading.Lock()
        self._cells: dict[str, Cell] = {}
        self._addresses: dict[str, str] = {}
        self.refresh()

    def refresh(self) -> None:
        """Read the registry again; databases that are open stay open, unless a cell has another address now."""
        with self._lock:
            known = dict(self._cells)
            for row in cell_mappings.every(self.api):
                old, address = known.get(row.uuid), row.database_connection
                moved = self._addresses.get(row.uuid) != address
                database = old.database if old and not moved else self._open(address)
                known[row.uuid], self._addresses[row.uuid] = (
                    Cell(row.uuid, row.name, bool(row.disabled), database), address
                )
            self._cells = known

    def __iter__(self) -> Iterator[Cell]:
        """Every cell but cell0."""
        return (cell for uuid, cell in self._cells.items() if uuid != CELL0)

    def every(self) -> tuple[Cell, ...]:
        """Every cell, cell0 first."""
        return tuple(sorted(self._cells.values(), key=lambda cell: cell.uuid != CELL0))

    def cell(self, uuid: str) -> Cell:
        """The cell; CellUnknown when a second look at the registry does not find it either."""
        if uuid not in self._cells:
            self.refresh()
        if uuid not in self._cells:
            raise CellUnknown(cell=uuid)
        return self._cells[uuid]

    def database(self, name: str) -> Database:
        """The database called `api`, or a cell's by its uuid."""
        return self.api if name == API else self.cell(name).database

    def names(self) -> tuple[str, ...]:
        """Every database's name: `api` and the uuids of the cells."""
        return (API, *self._cells)

    def close(self) -> None:
        """Close all of them."""
        for cell in self._cells.values():
            cell.database.dispose()
        self.api.dispose()


def schema_of(name: str) -> object:
    """The module that has the tables of a database."""
    return api_schema if name == API else cell_schema
