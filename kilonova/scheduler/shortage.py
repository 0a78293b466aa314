"""Why Placement has no candidates, as far as the hosts' last reports tell: what each of them lacks.

Placement answers an empty list and no reasons. The query says what was asked; rows of hypervisors and aggregates say
what there is. Traits, reserved amounts and devices are not in these rows: a host that lacks nothing here lacks that. It
asks nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final
from urllib.parse import parse_qsl

from kilonova.db.queries.host_states import HostRow
from kilonova.scheduler.host_state import Snapshot
from kilonova.scheduler.trace import FilterResult
from kilonova.scheduler.verdict import Verdict, fail

NAME: Final = "Placement"



def _left(total: int, ratio: float, used: int) -> int:
    return int(total * (ratio or 1)) - used


_ROOM: Mapping[str, tuple[str, Callable[[HostRow], int]]] = {
    "VCPU": ("VCPUs", lambda row: _left(row.vcpus, row.cpu_allocation_ratio, row.vcpus_used)),
    "MEMORY_MB": ("MB of memory", lambda row: _left(row.memory_mb, row.ram_allocation_ratio, row.memory_mb_used)),
    "DISK_GB": ("GB of disk", lambda row: _left(row.local_gb, row.disk_allocation_ratio, row.local_gb_used)),
}


class _Asked:
    """What a query asks for, over all its groups."""

    def __init__(self, query: str) -> None:
        self.amounts: dict[str, int] = {}
        self.tree: str | None = None
        self.any_of: list[frozenset[str]] = []
        self.none_of: frozenset[str] = frozenset()
        traits: set[str] = set()
        for name, value in parse_qsl(query):
            if name.startswith("resources"):
                for part in value.split(","):
                    resource, _, amount = part.partition(":")
                    self.amounts[resource] = self.amounts.get(resource, 0) + int(amount)
            elif name.startswith("in_tree"):
                self.tree = value
            elif name.startswith("member_of"):
                uuids = frozenset(value.lstrip("!").removeprefix("in:").split(","))
                if value.startswith("!"):
                    self.none_of |= uuids
                else:
                    self.any_of.append(uuids)
            elif name.startswith(("required", "root_required")):
                traits |= {trait for trait in value.split(",") if trait != "!COMPUTE_STATUS_DISABLED"}
        self.traits = ", ".join(sorted(traits))
        self.others = ", ".join(sorted(self.amounts.keys() - _ROOM.keys()))


def shortage(query: str, snapshot: Snapshot) -> FilterResult:
    """Every known host with what it lacks of the query, as if Placement were a filter that gives reasons."""
    asked = _Asked(query)
    found = FilterResult(NAME, len(snapshot.hosts), 0)
    for row in snapshot.hosts.values():
        found.verdicts.append((row.host, _lacking(row, asked, snapshot)))
    return found


def _lacking(row: HostRow, asked: _Asked, snapshot: Snapshot) -> Verdict:
    if asked.tree is not None and asked.tree != row.uuid:
        return fail("another host is asked for")
    if asked.any_of or asked.none_of:
        own = {aggregate.uuid for aggregate in snapshot.aggregates.by_host.get(row.host, ())}
        if any(not own & uuids for uuids in asked.any_of):
            return fail("it is in none of the aggregates asked for")
        if own & asked.none_of:
            return fail("it is in an aggregate that the request keeps out of")
    if row.service_disabled:
        return fail("its compute service is disabled")
    for resource, (unit, free) in _ROOM.items():
        wanted = asked.amounts.get(resource, 0)
        if wanted and (has := free(row)) < wanted:
            return fail(f"needs {{}} {unit}, {{}} are free", wanted, max(has, 0))
    what = "; ".join(filter(None, (asked.traits and f"traits {asked.traits}", asked.others)))
    if what:
        return fail("it has the room by its last report, and not all of: {}", what)
    return fail("it has the room by its last report; claims or reserved amounts that the report does not show took it")
