"""ImagePropertiesWeigher: hosts that have servers of like images come first (or last, by a negative multiplier).

For each property of the image: how many servers of the host have it with the same value, times its ratio in
`image_props_weight_setting`; without a setting every property counts 1. With the multiplier 0 nothing is counted,
also where an aggregate sets another.
"""

from __future__ import annotations

from collections.abc import Sequence

from kilonova.scheduler.host_state import HostState
from kilonova.scheduler.plugins import Weigher
from kilonova.scheduler.request import Request


def _weigh(request: Request, states: Sequence[HostState]) -> Sequence[float] | None:
    settings = request.settings
    if not settings.image_props_weight_multiplier:
        return None
    ratios = dict(settings.image_props_weight_setting)
    wanted = [
        ((name, str(value)), ratios.get(name, 0.0 if ratios else 1.0))
        for name, value in request.spec.image.properties.items()
    ]
    wanted = [(pair, ratio) for pair, ratio in wanted if ratio]
    if not wanted:
        return None
    none: dict[tuple[str, str], int] = {}
    alike = request.around.alike
    return [
        sum(counts.get(pair, 0) * ratio for pair, ratio in wanted)
        for counts in (alike.get(state.host, none) for state in states)
    ]


WEIGHER = Weigher("ImagePropertiesWeigher", _weigh, "image_props_weight_multiplier")
