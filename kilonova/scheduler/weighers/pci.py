"""PCIWeigher: few free devices are better, so that hosts with devices are kept for those who want them."""

from __future__ import annotations

from collections.abc import Sequence

from kilonova.scheduler.host_state import HostState
from kilonova.scheduler.plugins import Weigher
from kilonova.scheduler.request import Request

_MOST = 99


def _weigh(_request: Request, states: Sequence[HostState]) -> Sequence[float]:
    return [
        100 if state.left is None and state.row.pci_stats is None else 100 - min(_devices(state), _MOST)
        for state in states
    ]


def _devices(state: HostState) -> int:
    return sum(pool.count for pool in state.room.pools)


WEIGHER = Weigher("PCIWeigher", _weigh, "pci_weight_multiplier")
