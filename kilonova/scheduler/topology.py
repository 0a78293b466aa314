"""What a request wants of NUMA cells and devices, and what follows from it on the way to Placement and to the agent."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from kilonova.core.host_fit import Wanted, wanted_of
from kilonova.core.pci.placement import groups, providers_of
from kilonova.core.request_spec import RequestSpec
from kilonova.scheduler.candidates import Candidates
from kilonova.scheduler.host_state import HostState, fit_on


def wanted_by(spec: RequestSpec) -> Wanted:
    """What the request's flavor, image and devices want; false when nothing. TopologyInvalid."""
    return wanted_of(spec.flavor, spec.image.properties, spec.pci_requests)


def with_devices(spec: RequestSpec) -> RequestSpec:
    """The spec that asks Placement for its devices as well. AliasAmbiguous."""
    return replace(spec, requested_resources=(*spec.requested_resources, *groups(spec.pci_requests)))


def with_offers(states: Sequence[HostState], spec: RequestSpec, candidates: Candidates) -> list[HostState]:
    """The states that know which devices each of their candidates takes."""
    return [
        replace(state, offers=tuple(providers_of(spec.pci_requests, row) for row in candidates.offers(state.uuid)))
        for state in states
    ]


def offer_of(state: HostState, guest: Wanted) -> int:
    """Which of the host's candidates is to be claimed for the guest."""
    return fit_on(state, guest)[1] if state.offers else 0


def limits_for(state: HostState, guest: Wanted) -> dict[str, float]:
    """What the agent's claim has to keep to as well; empty for a guest without a topology."""
    if guest.topology is None:
        return {}
    return {"cpu_allocation_ratio": state.limits.cpu_allocation_ratio,
            "ram_allocation_ratio": state.limits.ram_allocation_ratio}  # fmt: skip
