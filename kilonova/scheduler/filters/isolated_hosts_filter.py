"""IsolatedHostsFilter: some hosts are kept for some images.

With `restrict_isolated_hosts_to_isolated_images` exactly the isolated images go to the isolated hosts; without it,
isolated images go only there and the others anywhere.
"""

from __future__ import annotations

from kilonova.scheduler.host_state import HostState
from kilonova.scheduler.plugins import Check, Filter
from kilonova.scheduler.request import Request
from kilonova.scheduler.verdict import PASS, Verdict, fail


def _prepare(request: Request) -> Check | None:
    settings = request.settings
    hosts = frozenset(settings.isolated_hosts)
    restrict = settings.restrict_isolated_hosts_to_isolated_images
    isolated_image = (request.spec.image.id or "") in settings.isolated_images
    if not isolated_image and not (restrict and hosts):
        return None

    def check(state: HostState) -> Verdict:
        isolated_host = state.host in hosts
        if isolated_image:
            return PASS if isolated_host else fail("the image belongs on isolated hosts")
        return fail("it is kept for isolated images") if isolated_host else PASS

    return check


FILTER = Filter("IsolatedHostsFilter", _prepare, on_rebuild=True)
