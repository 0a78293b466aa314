"""MetricsFilter: the host reports every metric that `[metrics]weight_setting` names."""

from __future__ import annotations

from kilonova.scheduler.attributes import metrics_of
from kilonova.scheduler.host_state import HostState
from kilonova.scheduler.plugins import Check, Filter
from kilonova.scheduler.request import Request
from kilonova.scheduler.verdict import PASS, Verdict, fail


def _prepare(request: Request) -> Check | None:
    wanted = frozenset(name for name, _ in request.settings.metrics_weight_setting)
    if not wanted:
        return None

    def check(state: HostState) -> Verdict:
        missing = wanted - metrics_of(state).keys()
        return fail("it does not report the metrics {}", ", ".join(sorted(missing))) if missing else PASS

    return check


FILTER = Filter("MetricsFilter", _prepare, once=False)
