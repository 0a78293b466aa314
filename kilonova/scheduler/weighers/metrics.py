"""MetricsWeigher: the sum of the host's metrics, each times the ratio that `[metrics]weight_setting` gives it.

A host without one of them ends the scheduling, or, where they are not required, weighs `weight_of_unavailable`.
"""

from __future__ import annotations

from collections.abc import Sequence

from kilonova.core.scheduling import NoValidHost
from kilonova.scheduler.attributes import metrics_of
from kilonova.scheduler.host_state import HostState
from kilonova.scheduler.plugins import Weigher
from kilonova.scheduler.request import Request


def _weigh(request: Request, states: Sequence[HostState]) -> Sequence[float] | None:
    wanted = request.settings.metrics_weight_setting
    return [_sum(request, state, wanted) for state in states] if wanted else None


def _sum(request: Request, state: HostState, wanted: Sequence[tuple[str, float]]) -> float:
    values = metrics_of(state)
    missing = [name for name, _ in wanted if name not in values]
    if not missing:
        return sum(values[name] * ratio for name, ratio in wanted)
    if request.settings.metrics_required:
        raise NoValidHost(
            reason=f"{state.host} does not report the metrics {', '.join(missing)}, which [metrics] required demands; "
            "enable MetricsFilter to leave such hosts out."
        )
    return request.settings.metrics_weight_of_unavailable


WEIGHER = Weigher("MetricsWeigher", _weigh, "metrics_weight_multiplier")
