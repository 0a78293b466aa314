"""PCIWeigher: few free devices are better, so that hosts with devices are kept for those who want them."""

from kilonova.scheduler.plugins import Weigher

_MOST = 99

WEIGHER = Weigher(
    "PCIWeigher",
    lambda _request, states: [100 - min(sum(pool.count for pool in state.room.pools), _MOST) for state in states],
    "pci_weight_multiplier",
)
