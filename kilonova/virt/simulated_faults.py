"""Failures on order for the simulated driver: which call of which verb fails, and how.

Written as `verb@N` or `verb@N-M` (calls counted from 1 in this process), with `!` at the end when no other host should
be tried, and `verb@N:host` to count and fail only on one host.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable
from dataclasses import dataclass

from kilonova.core.errors import Invalid
from kilonova.virt.driver import GuestAborted, GuestFailed

VERBS = ("spawn", "destroy", "power", "disk", "vif", "console")
_FORM = re.compile(r"(?P<verb>[a-z]+)@(?P<first>\d+)(-(?P<last>\d+))?(:(?P<host>[\w.-]+))?(?P<fatal>!)?")


class FaultInvalid(Invalid):
    code, message = "fault_invalid", "{text!r} is not a fault: verb@N, verb@N-M, verb@N:host, with ! to abort."


@dataclass(frozen=True, slots=True)
class Fault:
    """Calls first to last of a verb fail, on one host or all together. fatal: no other host should be tried."""

    verb: str
    first: int
    last: int
    host: str | None = None
    fatal: bool = False


def parse(text: str) -> Fault:
    """One fault as written in the configuration. FaultInvalid."""
    found = _FORM.fullmatch(text.strip())
    if found is None or found["verb"] not in VERBS:
        raise FaultInvalid(text=text)
    first = int(found["first"])
    return Fault(found["verb"], first, int(found["last"] or first), found["host"], bool(found["fatal"]))


class FaultPlan:
    """Counts calls and raises when one's turn has come. Safe from any thread."""

    def __init__(self, faults: Iterable[Fault]) -> None:
        self._faults = tuple(faults)
        self._counts = [0] * len(self._faults)
        self._lock = threading.Lock()

    def check(self, verb: str, host: str) -> None:
        """GuestFailed or GuestAborted when this call is one that must fail."""
        if self._faults:
            fault = self._due(verb, host)
            if fault is not None:
                kind = GuestAborted if fault.fatal else GuestFailed
                raise kind(host=host, reason=f"a fault was ordered for {verb} calls {fault.first} to {fault.last}")

    def _due(self, verb: str, host: str) -> Fault | None:
        due = None
        with self._lock:
            for number, fault in enumerate(self._faults):
                if fault.verb == verb and fault.host in (None, host):
                    self._counts[number] += 1
                    if fault.first <= self._counts[number] <= fault.last:
                        due = fault
        return due
