"""A filter, a weigher and a request filter. Each is a row that an entry point names; nothing is registered."""

from __future__ import annotations

from collections.abc import Sequence

from kilonova.core.scheduling import NoValidHost
from kilonova.scheduler.host_state import HostState
from kilonova.scheduler.plugins import Additions, Check, Filter, RequestFilter, Weigher
from kilonova.scheduler.request import Request
from kilonova.scheduler.verdict import PASS, Verdict, fail

_LEAST = "roomy:min_free_mb"


def _roomy(request: Request) -> Check | None:
    """The flavor says how much memory must stay free; without the extra spec every host passes."""
    text = request.spec.flavor.extra_specs.get(_LEAST)
    if text is None:
        return None
    if not text.isdigit():
        raise NoValidHost(reason=f"The flavor's {_LEAST} is no number: {text}.")
    least = int(text) + request.spec.flavor.memory_mb

    def check(state: HostState) -> Verdict:
        return PASS if state.free_ram_mb >= least else fail("{} MiB are free, wanted {}", state.free_ram_mb, least)

    return check


def _quietest(_request: Request, states: Sequence[HostState]) -> Sequence[float]:
    """Hosts with fewer servers first."""
    return [-state.num_instances for state in states]


def _licensed(request: Request) -> Additions | None:
    """Images that need a license go to hosts that have one."""
    vendor = request.spec.image.properties.get("license_vendor")
    return Additions(required=frozenset({f"CUSTOM_LICENSE_{str(vendor).upper()}"})) if vendor else None


ROOMY = Filter("RoomyFilter", _roomy, once=False)
QUIETEST = Weigher("QuietestWeigher", _quietest, 0.5, key="quietest_weight_multiplier")
LICENSED = RequestFilter("licensed_filter", lambda _settings: True, _licensed)
