"""Reading all cells for a list: a cell that is down gives nothing, and the others go on."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import TypeVar

from kilonova.cells.cells import Cell
from kilonova.compute.world import World
from kilonova.sql.engine import Connection, unreachable

LOG = logging.getLogger(__name__)

T = TypeVar("T")


def read_cell(cell: Cell, read: Callable[[Connection], T]) -> T | None:
    """What `read` answers for the cell's database; None when that cannot be reached (logged)."""
    try:
        with cell.database.read() as connection:
            return read(connection)
    except Exception as error:
        if not unreachable(error):
            raise
        LOG.warning("Cell %s (%s) cannot be read and is left out: %s", cell.name, cell.uuid, error)
        return None


def read_each(world: World, read: Callable[[Connection], T]) -> Iterator[tuple[Cell, T | None]]:
    """Each cell with what `read_cell` answers."""
    for cell in world.cells:
        yield cell, read_cell(cell, read)
