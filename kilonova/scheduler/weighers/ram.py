"""RAMWeigher: more free memory is better (with a negative multiplier, worse: servers are packed)."""

from kilonova.scheduler.plugins import Weigher

WEIGHER = Weigher(
    "RAMWeigher", lambda _request, states: [state.free_ram_mb for state in states], "ram_weight_multiplier", minimum=0.0
)
