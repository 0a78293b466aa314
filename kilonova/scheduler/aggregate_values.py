"""Numbers that a host's aggregates set in the place of an option."""

from __future__ import annotations

import logging
from collections.abc import Callable

from kilonova.scheduler.host_state import HostState

LOG = logging.getLogger(__name__)


def override(state: HostState, key: str, default: float, read: Callable[[str], float] = float) -> float:
    """The number that the host's aggregates give under `key`: the smallest of several, `default` when none is there
    or one cannot be read. read: int where only whole numbers make sense.
    """
    values = state.metadata(key)
    if not values:
        return default
    if len(values) > 1:
        LOG.info("%s has %d values of %s in its aggregates; the smallest is used", state.host, len(values), key)
    try:
        return min(read(value) for value in values)
    except ValueError:
        LOG.warning("Could not read %s of the aggregates of %s: %s", key, state.host, sorted(values))
        return default
