"""Asking Placement for candidates: once, and a second time for pinned CPUs on hosts that report none.

It must not know hosts: what it answers are Placement's words.
"""

from __future__ import annotations

import logging

from kilonova.clients.placement import Candidates as Answer
from kilonova.core.request_spec import RequestSpec
from kilonova.scheduler.candidates import VERSION
from kilonova.scheduler.claim import PlacementClient
from kilonova.scheduler.guest_features import pins_all_cpus
from kilonova.scheduler.plugins import Additions
from kilonova.scheduler.resource_request import to_query
from kilonova.scheduler.settings import SchedulerSettings

LOG = logging.getLogger(__name__)


def ask(
    client: PlacementClient,
    spec: RequestSpec,
    additions: Additions,
    settings: SchedulerSettings,
    *,
    in_tree: str | None,
    limit: int | None,
) -> tuple[str, Answer | None]:
    """The query and Placement's answer; None when it gave none that can be used, which its client has logged.

    A flavor with pinned CPUs asks for PCPU and then for VCPU, for hosts that an upgrade has not reached; the second
    answer comes after the first.
    """
    query = to_query(spec, additions, in_tree=in_tree, limit=limit)
    answer = client.allocation_candidates(query, VERSION)
    if not pins_all_cpus(spec) or settings.disable_fallback_pcpu_query:
        return query, answer
    LOG.debug("Asking for VCPU too, because hosts of an older release report pinned CPUs as such")
    fallback = to_query(spec, additions, in_tree=in_tree, limit=limit, pinned=False)
    return query, _merged(answer, client.allocation_candidates(fallback, VERSION))


def _merged(first: Answer | None, second: Answer | None) -> Answer | None:
    if first is None or second is None:
        return first or second
    return Answer(
        [*first.allocation_requests, *second.allocation_requests],
        {**second.provider_summaries, **first.provider_summaries},
    )
