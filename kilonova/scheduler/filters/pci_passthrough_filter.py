"""PciPassthroughFilter: the host has the devices that the flavor's aliases and the ports ask for, free."""

from __future__ import annotations

from kilonova.core.host_fit import Fitted, Wanted
from kilonova.scheduler.host_state import HostState, fit_on
from kilonova.scheduler.plugins import Check, Filter
from kilonova.scheduler.request import Request
from kilonova.scheduler.verdict import PASS, Verdict, fail


def _prepare(request: Request) -> Check | None:
    wanted = Wanted(None, request.spec.pci_requests)
    if not wanted:
        return None

    def check(state: HostState) -> Verdict:
        if not state.room.pools:
            return fail("it has no free PCI device")
        found, _ = fit_on(state, wanted)
        return PASS if isinstance(found, Fitted) else fail(found.reason, *found.numbers)

    return check


FILTER = Filter("PciPassthroughFilter", _prepare, once=False)
