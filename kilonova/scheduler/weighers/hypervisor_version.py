"""HypervisorVersionWeigher: a newer hypervisor is better."""

from kilonova.scheduler.plugins import Weigher

WEIGHER = Weigher(
    "HypervisorVersionWeigher",
    lambda _request, states: [state.row.hypervisor_version or 0 for state in states],
    "hypervisor_version_weight_multiplier",
)
