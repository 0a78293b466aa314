"""IoOpsWeigher: fewer servers that build, resize or copy images are better (the multiplier is negative)."""

from kilonova.scheduler.plugins import Weigher

WEIGHER = Weigher(
    "IoOpsWeigher",
    lambda _request, states: [state.num_io_ops for state in states],
    "io_ops_weight_multiplier",
    minimum=0.0,
)
