"""NUMATopologyFilter: the guest's cells, pinned CPUs, memory pages and devices fit the host's cells together.

A guest without a topology passes everywhere; one with a topology passes no host that reports none.
"""

from __future__ import annotations

from kilonova.core.host_fit import Fitted
from kilonova.scheduler.host_state import HostState, fit_on
from kilonova.scheduler.plugins import Check, Filter
from kilonova.scheduler.request import Request
from kilonova.scheduler.topology import wanted_by
from kilonova.scheduler.verdict import PASS, Verdict, fail


def _prepare(request: Request) -> Check | None:
    wanted, pack = wanted_by(request.spec), request.settings.packing_host_numa_cells_allocation_strategy
    if wanted.topology is None:
        return None

    def check(state: HostState) -> Verdict:
        found, _ = fit_on(state, wanted, pack=pack)
        return PASS if isinstance(found, Fitted) else fail(found.reason, *found.numbers)

    return check


FILTER = Filter("NUMATopologyFilter", _prepare, once=False)
