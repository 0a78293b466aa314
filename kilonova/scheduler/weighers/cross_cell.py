"""CrossCellWeigher: a move that may leave its cell stays in it where it can."""

from __future__ import annotations

from collections.abc import Sequence

from kilonova.scheduler.host_state import HostState
from kilonova.scheduler.plugins import Weigher
from kilonova.scheduler.request import Request


def _weigh(request: Request, states: Sequence[HostState]) -> Sequence[float] | None:
    destination = request.spec.requested_destination
    if destination is None or not destination.allow_cross_cell_move or destination.cell is None:
        return None
    return [1 if state.cell_uuid == destination.cell else -1 for state in states]


WEIGHER = Weigher("CrossCellWeigher", _weigh, "cross_cell_move_weight_multiplier")
