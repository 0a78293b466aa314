"""CPUWeigher: more virtual CPUs that may still be given out are better."""

from kilonova.scheduler.plugins import Weigher

WEIGHER = Weigher(
    "CPUWeigher",
    lambda _request, states: [
        state.vcpus_total * state.row.cpu_allocation_ratio - state.vcpus_used for state in states
    ],
    "cpu_weight_multiplier",
    minimum=0.0,
)
