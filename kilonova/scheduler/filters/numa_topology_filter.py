"""NUMATopologyFilter: the guest's cells, pinned CPUs, memory pages and devices fit the host's cells together.

A guest without a topology passes everywhere; one with a topology passes no host that reports none. Fitting takes long
and hosts of one kind and filling report one text, so what came of it is remembered, for later requests as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from kilonova.core.host_fit import Fitted, Wanted, fit
from kilonova.core.numa.fit import Misfit
from kilonova.core.numa.topology import GuestTopology, Limits
from kilonova.core.pci.pools import NoDevice
from kilonova.scheduler.host_state import HostState, fit_on, room_of
from kilonova.scheduler.plugins import Check, Filter
from kilonova.scheduler.request import Request
from kilonova.scheduler.topology import wanted_by
from kilonova.scheduler.verdict import PASS, Verdict, fail

_REMEMBERED = 16384


@dataclass(frozen=True, slots=True, eq=False)
class _Asked:
    """What is to be fitted, compared by identity: its parts would be hashed anew for each host."""

    wanted: Wanted
    pack: bool


def _prepare(request: Request) -> Check | None:
    wanted, pack = wanted_by(request.spec), request.settings.packing_host_numa_cells_allocation_strategy
    if wanted.topology is None:
        return None
    asked = _Asked(wanted, pack) if wanted.requests else _without_devices(wanted.topology, pack)

    def check(state: HostState) -> Verdict:
        if state.left is not None or state.offers:
            return _verdict(fit_on(state, wanted, pack=pack)[0])
        row = state.row
        return _untouched(asked, row.numa_topology, row.pci_stats, row.cpu_allocation_ratio, row.ram_allocation_ratio)

    return check


@lru_cache(maxsize=64)
def _without_devices(topology: GuestTopology, pack: bool) -> _Asked:
    return _Asked(Wanted(topology), pack)


@lru_cache(maxsize=_REMEMBERED)
def _untouched(asked: _Asked, topology: str | None, pools: str | None, cpu_ratio: float, ram_ratio: float) -> Verdict:
    """Of a host as its row has it: nothing was consumed since."""
    return _verdict(fit(room_of(topology, pools), asked.wanted, Limits(cpu_ratio, ram_ratio), pack=asked.pack))


def _verdict(found: Fitted | Misfit | NoDevice) -> Verdict:
    return PASS if isinstance(found, Fitted) else fail(found.reason, *found.numbers)


FILTER = Filter("NUMATopologyFilter", _prepare, once=False)
