"""A Placement in memory for replays: one flat provider per host, made of what the host's row says.

It knows VCPU, PCPU (counted as VCPU), MEMORY_MB and DISK_GB, traits, aggregates, trees and the limit. Reserved amounts,
nested and shared providers are not in a recording: groups of a request are served by the host as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final
from urllib.parse import parse_qsl

from kilonova.clients.placement import AllocationRefused, Candidates, read_candidates
from kilonova.core import json
from kilonova.db.queries.host_states import AggregateRow, HostRow

KNOWN: Final = ("VCPU", "MEMORY_MB", "DISK_GB")
_SAME: Final = {"PCPU": "VCPU"}


class ReplayPlacement:
    """The providers of the hosts. used: by provider and class; what was claimed is added."""

    def __init__(
        self, hosts: Iterable[HostRow], aggregates: Iterable[AggregateRow], traits: Mapping[str, Iterable[str]]
    ) -> None:
        self.capacity: dict[str, dict[str, int]] = {}
        self.used: dict[str, dict[str, int]] = {}
        self._aggregates: dict[str, frozenset[str]] = {}
        groups = list(aggregates)
        for row in hosts:
            self.capacity[row.uuid] = {
                "VCPU": int(row.vcpus * row.cpu_allocation_ratio),
                "MEMORY_MB": int(row.memory_mb * row.ram_allocation_ratio),
                "DISK_GB": int(row.local_gb * row.disk_allocation_ratio),
            }
            self.used[row.uuid] = {
                "VCPU": row.vcpus_used, "MEMORY_MB": row.memory_mb_used, "DISK_GB": row.local_gb_used,
            }  # fmt: skip
            self._aggregates[row.uuid] = frozenset(group.uuid for group in groups if row.host in group.hosts)
        self._traits = {trait: frozenset(uuids) for trait, uuids in traits.items()}
        self._held: dict[str, dict[str, Any]] = {}

    def allocation_candidates(self, query: str, version: str = "1.36") -> Candidates | None:
        """The hosts with room, in the order of the recording."""
        asked = parse_qsl(query)
        wanted = _amounts(asked)
        limit = next((int(value) for name, value in asked if name == "limit"), len(self.capacity))
        found: list[str] = []
        for uuid in self._allowed(asked):
            if self._fits(uuid, wanted):
                found.append(uuid)
                if len(found) >= limit:
                    break
        requests = [{"allocations": {uuid: {"resources": wanted}}, "mappings": {"": [uuid]}} for uuid in found]
        return read_candidates(json.dumps({
            "allocation_requests": requests, "provider_summaries": {uuid: self._summary(uuid) for uuid in found},
        }))  # fmt: skip

    def _allowed(self, asked: list[tuple[str, str]]) -> list[str]:
        allowed = list(self.capacity)
        for name, value in asked:
            if name.startswith("in_tree"):
                allowed = [uuid for uuid in allowed if uuid == value]
            elif name.startswith("member_of"):
                uuids = frozenset(value.lstrip("!").removeprefix("in:").split(","))
                none = value.startswith("!")
                allowed = [uuid for uuid in allowed if bool(uuids & self._aggregates[uuid]) != none]
            elif name.startswith(("required", "root_required")):
                for trait in value.split(","):
                    having = self._traits.get(trait.lstrip("!"), frozenset())
                    allowed = [uuid for uuid in allowed if (uuid in having) != trait.startswith("!")]
        return allowed

    def _fits(self, uuid: str, wanted: Mapping[str, int]) -> bool:
        capacity, used = self.capacity[uuid], self.used[uuid]
        return all(amount <= capacity.get(name, 0) - used.get(name, 0) for name, amount in wanted.items())

    def _summary(self, uuid: str) -> dict[str, Any]:
        resources = {
            name: {"capacity": total, "used": self.used[uuid].get(name, 0)}
            for name, total in self.capacity[uuid].items()
        }
        return {"resources": resources, "parent_provider_uuid": None, "root_provider_uuid": uuid}

    def claim(
        self, consumer: str, allocation_request: dict[str, Any], project_id: str, user_id: str,
        *, generation: int | None = None, version: str = "1.36", merge: bool = False,
    ) -> bool:  # fmt: skip
        """Take it, where there is room."""
        return self._take(consumer, allocation_request)

    def post_allocations(self, body: dict[str, Any], version: str = "1.36") -> None:
        """Take them all, or none. AllocationRefused."""
        taken: list[str] = []
        for consumer, request in body.items():
            if not self._take(consumer, request):
                for one in taken:
                    self._give_back(one)
                raise AllocationRefused(consumer=consumer, reason="there is no room")
            taken.append(consumer)

    def allocations(self, consumer: str) -> dict[str, Any]:
        """What a server holds."""
        return {"allocations": self._held.get(consumer, {}).get("allocations", {})}

    def put_allocations(
        self, consumer: str, allocations: dict[str, Any], project_id: str, user_id: str, *, generation: int | None,
        version: str = "1.36",
    ) -> None:  # fmt: skip
        """Servers of a replay hold nothing before they are placed, so there is nothing to put back."""
        self._give_back(consumer)

    def delete_allocations(self, consumer: str) -> bool:
        """Give it back."""
        return self._give_back(consumer)

    def _take(self, consumer: str, request: dict[str, Any]) -> bool:
        ((uuid, part),) = request["allocations"].items()
        if not self._fits(uuid, part["resources"]):
            return False
        self._add(uuid, part["resources"], 1)
        self._held[consumer] = request
        return True

    def _give_back(self, consumer: str) -> bool:
        held = self._held.pop(consumer, None)
        for uuid, part in (held or {"allocations": {}})["allocations"].items():
            self._add(uuid, part["resources"], -1)
        return held is not None

    def _add(self, uuid: str, resources: Mapping[str, int], sign: int) -> None:
        for name, amount in resources.items():
            self.used[uuid][name] = self.used[uuid].get(name, 0) + sign * amount


def _amounts(asked: list[tuple[str, str]]) -> dict[str, int]:
    """All groups together."""
    found: dict[str, int] = {}
    for name, value in asked:
        if name.startswith("resources"):
            for part in value.split(","):
                resource, _, amount = part.partition(":")
                resource = _SAME.get(resource, resource)
                found[resource] = found.get(resource, 0) + int(amount)
    return found
