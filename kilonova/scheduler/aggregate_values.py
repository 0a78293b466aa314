"""What a host's aggregates decide: verdicts, and numbers in the place of an option."""

from __future__ import annotations

import logging
from collections.abc import Callable

from kilonova.db.queries.host_states import AggregateRow
from kilonova.scheduler.host_state import HostState
from kilonova.scheduler.plugins import Check
from kilonova.scheduler.verdict import Verdict

LOG = logging.getLogger(__name__)


def by_aggregates(check: Check) -> Check:
    """The check of what a host's aggregates alone decide, made once for all hosts that are in the same ones."""
    known: dict[int, tuple[tuple[AggregateRow, ...], Verdict]] = {}  # by identity; the tuple is kept, so it stays that

    def shared(state: HostState) -> Verdict:
        found = known.get(id(state.aggregates))
        if found is None:
            found = known[id(state.aggregates)] = state.aggregates, check(state)
        return found[1]

    return shared


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
