"""ComputeCapabilitiesFilter: what the flavor's extra specs say of the host holds (operators: `scheduler.operators`).

A key `capabilities:<path>` is looked for in the host state, its row, its stats, and below, at each colon, in documents.
A key without a scope counts only when the host has an attribute or stat of that name; other scopes are not ours.
"""

from __future__ import annotations

import logging

from kilonova.scheduler.attributes import MISSING, value_at
from kilonova.scheduler.host_state import HostState
from kilonova.scheduler.operators import Test, compile_requirement
from kilonova.scheduler.plugins import Check, Filter
from kilonova.scheduler.request import Request
from kilonova.scheduler.verdict import PASS, Verdict, fail

LOG = logging.getLogger(__name__)

_SCOPE = "capabilities"
_MAXPHYSADDR = "hw:maxphysaddr_bits"



def _prepare(request: Request) -> Check | None:
    wanted = [row for key, text in request.spec.flavor.extra_specs.items() if (row := _requirement(key, text))]
    if not wanted:
        return None

    def check(state: HostState) -> Verdict:
        for path, scoped, test, text in wanted:
            value = value_at(state, path)
            if value is MISSING and not scoped:
                continue
            if value is MISSING or value is None:
                LOG.debug("%s fails the extra spec %s: the host has no such capability", state.host, ":".join(path))
                return fail("it does not report {}, wanted {}", ":".join(path), text)
            if not test(str(value)):
                LOG.debug("%s fails the extra spec %s: wanted %s, has %s", state.host, ":".join(path), text, value)
                return fail("its {} is {}, wanted {}", ":".join(path), value, text)
        return PASS

    return check


def _requirement(key: str, text: str) -> tuple[tuple[str, ...], bool, Test, str] | None:
    """(path, whether it must exist, test, the text of it); None for another filter's key."""
    if key == _MAXPHYSADDR:
        return ("cpu_info", "maxphysaddr", "bits"), True, compile_requirement(f">= {text}"), f">= {text}"
    scope, colon, rest = key.partition(":")
    if not colon:
        return (key,), False, compile_requirement(text), text
    if scope != _SCOPE or not rest:
        return None
    return tuple(rest.split(":")), True, compile_requirement(text), text


FILTER = Filter("ComputeCapabilitiesFilter", _prepare)
