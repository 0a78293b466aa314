"""NumInstancesWeigher: by the number of servers on a host; off unless its multiplier is set."""

from kilonova.scheduler.plugins import Weigher

WEIGHER = Weigher(
    "NumInstancesWeigher",
    lambda _request, states: [state.num_instances for state in states],
    "num_instances_weight_multiplier",
)
