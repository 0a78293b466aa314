"""From raw weights to a ranking: normalisation and multipliers, once for all weighers.

Rules: a raw value is clamped to the weigher's fixed ends; a weigher's values are then scaled to 0…1 between its ends
(fixed, else the smallest and largest present); equal ends give 0. RAM, CPU, disk and IO have a fixed minimum of 0, so
equal positive values give 1. Scores add up multiplier × scaled value; the sort is stable, best first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from kilonova.scheduler.aggregate_values import override
from kilonova.scheduler.blame import blamed
from kilonova.scheduler.host_state import HostState
from kilonova.scheduler.plugins import Weigher
from kilonova.scheduler.request import Request
from kilonova.scheduler.settings import SchedulerSettings

Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.intp]


def normalise(raw: Floats, minimum: Floats, maximum: Floats) -> Floats:
    """Scale each row of `raw` (weighers × hosts) to 0…1. minimum and maximum: the fixed end per row, nan for none."""
    return _scaled(raw, *_span(raw, minimum, maximum))


def _span(raw: Floats, minimum: Floats, maximum: Floats) -> tuple[Floats, Floats]:
    """The ends that each row is scaled between."""
    low = np.where(np.isnan(minimum), np.fmin(raw.min(axis=1), maximum), minimum)
    high = np.where(np.isnan(maximum), np.fmax(raw.max(axis=1), minimum), maximum)
    return low, high


def _scaled(raw: Floats, low: Floats, high: Floats) -> Floats:
    low, high = low[:, None], high[:, None]
    span = high - low
    scaled = (np.clip(raw, low, high) - low) / np.where(span > 0, span, 1.0)
    return np.asarray(np.where(span > 0, scaled, 0.0))


class Ranking:
    """The weights of one request's hosts. After a server was placed only the changed host is weighed again, and scaled
    again are only its values and the weighers whose ends it moved.

    Hosts are named by their index in the list it was made from, which never changes its order.
    """

    def __init__(self, weighers: Sequence[Weigher], request: Request, states: Sequence[HostState]) -> None:
        rows, raw = [], []
        for weigher in weighers:
            with blamed("Weigher", weigher.name):
                values = weigher.weigh(request, states)
            if values is not None:
                rows.append(weigher)
                raw.append(values)
        self.weighers: tuple[Weigher, ...] = tuple(rows)
        self.raw: Floats = np.array(raw, dtype=np.float64).reshape(len(rows), len(states))
        self.minimum: Floats = _ends([row.minimum for row in rows])
        self.maximum: Floats = _ends([row.maximum for row in rows])
        self.multipliers: Floats = _multipliers(rows, request, states)
        self._parts: Floats = np.zeros_like(self.raw)
        self._between: tuple[Floats, Floats] = np.full(len(rows), math.nan), np.full(len(rows), math.nan)
        self._changed: set[int] = set()

    def update(self, request: Request, index: int, state: HostState) -> None:
        """The host at `index` is now in this state."""
        for number, weigher in enumerate(self.weighers):
            with blamed("Weigher", weigher.name):
                values = weigher.weigh(request, [state])
            self.raw[number, index] = values[0] if values is not None else 0.0
        self._changed.add(index)

    def scores(self, alive: Sequence[int]) -> tuple[Floats, Floats]:
        """(score per host, contribution per weigher and host) of the hosts at these indices, in their order.

        A single host is not weighed: its score is 0.
        """
        if len(alive) < 2 or not self.weighers:
            return np.zeros(len(alive)), np.zeros((len(self.weighers), len(alive)))
        picked = np.asarray(alive, dtype=np.intp)
        self._rescale(picked)
        parts = self._parts[:, picked]
        return np.asarray(parts.sum(axis=0)), parts

    def _rescale(self, picked: Places) -> None:
        """Bring the parts of all hosts up to date, scaled between the ends of those picked."""
        raw = self.raw if len(picked) == self.raw.shape[1] else self.raw[:, picked]
        low, high = _span(raw, self.minimum, self.maximum)
        moved = ((low != self._between[0]) | (high != self._between[1])).nonzero()[0]
        self._put(moved, slice(None), low, high)
        self._put(slice(None), np.fromiter(self._changed, np.intp), low, high)
        self._between, self._changed = (low, high), set()

    def _put(self, rows: Places | slice, columns: Places | slice, low: Floats, high: Floats) -> None:
        parts = _scaled(self.raw[rows][:, columns], low[rows], high[rows])
        multipliers = self.multipliers[rows]
        parts *= multipliers[:, columns] if multipliers.shape[1] > 1 else multipliers
        if isinstance(rows, slice):
            self._parts[:, columns] = parts
        else:
            self._parts[rows] = parts


def ordered(alive: Sequence[int], scores: Floats) -> list[int]:
    """The indices, best score first; equal scores keep their order."""
    return [alive[position] for position in np.argsort(-scores, kind="stable").tolist()]


def _ends(values: Sequence[float | None]) -> Floats:
    return np.array([math.nan if value is None else value for value in values], dtype=np.float64)


def _multipliers(weighers: Sequence[Weigher], request: Request, states: Sequence[HostState]) -> Floats:
    """One column when no aggregate overrides a multiplier, else a column per host."""
    configured = [row.sign * _configured(row, request.settings) for row in weighers]
    column = np.array(configured, dtype=np.float64).reshape(len(weighers), 1)
    overridden = [row.metadata_key in request.snapshot.aggregates.keys for row in weighers]
    if not any(overridden):
        return column
    full = np.repeat(column, len(states), axis=1)
    for number, weigher in enumerate(weighers):
        if overridden[number]:
            default = _configured(weigher, request.settings)
            full[number] = weigher.sign * np.array(_overridden(weigher.metadata_key, default, states))
    return full


def _overridden(key: str, default: float, states: Sequence[HostState]) -> list[float]:
    """The number per host; hosts in the same aggregates have one tuple of them and share one look at their metadata."""
    where = [id(state.aggregates) for state in states]
    one_of = dict(zip(where, states, strict=True))
    known = {place: override(state, key, default) for place, state in one_of.items()}
    return [known[place] for place in where]


def _configured(weigher: Weigher, settings: SchedulerSettings) -> float:
    named = weigher.multiplier
    return float(getattr(settings, named)) if isinstance(named, str) else named
