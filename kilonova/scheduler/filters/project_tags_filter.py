"""ProjectTagsFilter: a project with a tag of `project_tags_allowed` goes to hosts whose aggregates share a tag with it.

The metadata key is `nectar:project-tags`, a comma list. All the project's tags are compared, not only those allowed.
Projects without such a tag go anywhere.
"""

from __future__ import annotations

from collections.abc import Iterable

from kilonova.scheduler.aggregate_values import by_aggregates
from kilonova.scheduler.host_state import HostState
from kilonova.scheduler.plugins import Check, Filter
from kilonova.scheduler.request import Request
from kilonova.scheduler.verdict import PASS, Verdict, fail

KEY = "nectar:project-tags"


def _prepare(request: Request) -> Check | None:
    tags = request.around.project_tags
    if tags.isdisjoint(request.settings.project_tags_allowed):
        return None

    @by_aggregates
    def check(state: HostState) -> Verdict:
        offered = state.merged_metadata(KEY)
        if tags & offered:
            return PASS
        return fail("its aggregates have the tags {}, the project has {}", _listed(offered), _listed(tags))

    return check


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "none"


FILTER = Filter("ProjectTagsFilter", _prepare)
