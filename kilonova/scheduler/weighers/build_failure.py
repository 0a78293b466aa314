"""BuildFailureWeigher: hosts where builds failed lately come last; the configured multiplier is negated."""

from kilonova.scheduler.plugins import Weigher

WEIGHER = Weigher(
    "BuildFailureWeigher",
    lambda _request, states: [state.failed_builds for state in states],
    "build_failure_weight_multiplier",
    sign=-1,
)
