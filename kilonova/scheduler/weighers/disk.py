"""DiskWeigher: more free disk is better."""

from kilonova.scheduler.plugins import Weigher

WEIGHER = Weigher(
    "DiskWeigher",
    lambda _request, states: [state.free_disk_mb for state in states],
    "disk_weight_multiplier",
    minimum=0.0,
)
