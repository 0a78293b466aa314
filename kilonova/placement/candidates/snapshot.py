"""All providers as columns, immutable: a request keeps the snapshot it started with, changes make a new one.

Rows stand in pre-order: a tree is a slice and a subtree is `[row, row + size)`. A tree that changes shape is buried
(its rows stay, dead and empty) and appended anew. Per resource class there is a compact table of the rows that have
it. Traits are bits in words of 64, aggregates sorted arrays of rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Rows = npt.NDArray[np.int32]
Words = npt.NDArray[np.uint64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Facts:
    """One provider as the store has it. inventories: (capacity, used, min_unit, max_unit, step_size) by class id."""

    id: int
    uuid: str
    name: str
    generation: int
    parent_id: int | None
    root_id: int
    updated_at: datetime
    inventories: Mapping[int, tuple[int, int, int, int, int]]
    traits: tuple[int, ...] = ()
    aggregates: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Shown:
    """What is known of a row besides its numbers."""

    id: int
    uuid: str
    name: str
    parent_uuid: str | None
    root_uuid: str
    updated_at: datetime
    classes: tuple[int, ...]
    traits: tuple[int, ...]
    aggregates: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Column:
    """One resource class: the rows that have it (ascending) and their numbers. room = capacity - used."""

    rows: Rows
    capacity: Ints
    room: Ints
    low: Ints
    high: Ints
    step: Ints
    low_max: int
    high_min: int
    plain: bool  # every step is 1

    @property
    def used(self) -> Ints:
        """What is taken."""
        return self.capacity - self.room


@dataclass(frozen=True, slots=True)
class Snapshot:
    """See the module. `flat`: every tree is one provider. `fragments` caches encoded summaries by row."""

    shown: list[Shown | None]
    generation: Ints
    root: Rows
    parent: Rows
    size: Rows
    alive: Mask
    row_of: dict[int, int]
    row_of_uuid: dict[str, int]
    columns: dict[int, Column]
    trait_bits: dict[int, int]
    words: list[Words]
    aggregates: dict[str, Rows]
    live: int
    flat: bool
    fragments: list[bytes | None]
    cache: dict[str, object] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.shown)


def make_column(rows: Rows, capacity: Ints, used: Ints, low: Ints, high: Ints, step: Ints) -> Column:
    """A column from arrays in ascending order of rows."""
    some = len(rows) > 0
    return Column(
        rows, capacity, capacity - used, low, high, step,
        int(low.max()) if some else 0, int(high.min()) if some else 0, bool((step == 1).all()),
    )  # fmt: skip


def empty() -> Snapshot:
    """No providers."""
    rows = np.zeros(0, np.int32)
    return Snapshot(
        [], np.zeros(0, np.int64), rows, rows, rows, np.zeros(0, np.bool_), {}, {}, {}, {}, [], {}, 0, True, []
    )


def provider_numbers(snapshot: Snapshot, row: int, class_id: int) -> tuple[int, int]:
    """(capacity, used) of one provider and class it has."""
    column = snapshot.columns[class_id]
    at = int(np.searchsorted(column.rows, row))
    capacity = int(column.capacity[at])
    return capacity, capacity - int(column.room[at])


def checksum(snapshot: Snapshot) -> tuple[int, int, int]:
    """Number of providers, sum of their generations, sum of all use: what a store can compute as cheaply."""
    generations = int(snapshot.generation[snapshot.alive].sum())
    return snapshot.live, generations, sum(int(column.used.sum()) for column in snapshot.columns.values())


def size(snapshot: Snapshot) -> int:
    """Bytes of the columns."""
    arrays: list[npt.NDArray[Any]] = [
        snapshot.generation, snapshot.root, snapshot.parent, snapshot.size, snapshot.alive, *snapshot.words,
        *snapshot.aggregates.values(),
    ]  # fmt: skip
    for one in snapshot.columns.values():
        arrays += (one.rows, one.capacity, one.room, one.low, one.high, one.step)
    return sum(array.nbytes for array in arrays)
