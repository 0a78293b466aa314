"""A scheduler's surroundings for tests: databases of one cell on SQLite, and a Placement that lives in memory.

The fake implements Placement's rules for flat providers (capacity, member_of, required and forbidden traits, in_tree,
limit, consumer generations), so that a test sees what a real one would answer.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from kilonova.clients.placement import (
    AllocationRefused,
    Candidates,
    ConsumerConflict,
    ProviderNotFound,
    read_candidates,
)
from kilonova.core import clock, ids, json
from kilonova.core.liveness import SERVICE_VERSION
from kilonova.core.request_spec import FlavorSpec, RequestSpec
from kilonova.db import api_schema, cell_schema
from kilonova.sql.engine import Database

CELL = "11111111-1111-4111-8111-111111111111"
SMALL = FlavorSpec(id=1, flavorid="1", name="m1.small", memory_mb=2048, vcpus=1, root_gb=20)
COMPUTE = {"binary": "nova-compute", "topic": "compute", "version": SERVICE_VERSION}


def spec_of(flavor: FlavorSpec = SMALL, **fields: Any) -> RequestSpec:
    """A request for this flavor by one project."""
    return RequestSpec(project_id="p" * 32, user_id="u" * 32, flavor=flavor, **fields)


@dataclass
class Provider:
    """One flat provider: capacities, uses, traits, aggregates."""

    uuid: str
    capacity: dict[str, int]
    used: dict[str, int] = field(default_factory=dict)
    traits: set[str] = field(default_factory=set)
    aggregates: set[str] = field(default_factory=set)

    def fits(self, resources: Mapping[str, int]) -> bool:
        return all(self.used.get(name, 0) + n <= self.capacity.get(name, 0) for name, n in resources.items())


class FakePlacement:
    """Placement for flat providers."""

    def __init__(self) -> None:
        self.providers: dict[str, Provider] = {}
        self.consumers: dict[str, dict[str, Any]] = {}
        self.queries: list[str] = []
        self.puts = self.posts = 0
        self.lock = threading.RLock()
        self.before_claim: Callable[[str, str], None] = lambda _consumer, _provider: None

    def allocation_candidates(self, query: str, version: str = "1.36") -> Candidates | None:
        self.queries.append(query)
        asked = parse_qs(query, keep_blank_values=True)
        resources = {name: int(n) for name, n in (row.split(":") for row in asked["resources"][0].split(","))}
        limit = int(asked.get("limit", ["1000000"])[0])
        found = [row for row in self.providers.values() if row.fits(resources) and _matches(row, asked)][:limit]
        answer = {
            "allocation_requests": [
                {"allocations": {row.uuid: {"resources": resources}}, "mappings": {"": [row.uuid]}} for row in found
            ],
            "provider_summaries": {row.uuid: _summary(row) for row in found},
        }
        return read_candidates(json.dumps(answer))

    def claim(
        self, consumer: str, allocation_request: dict[str, Any], project_id: str, user_id: str,
        *, generation: int | None = None, version: str = "1.36", merge: bool = False,
    ) -> bool:  # fmt: skip
        with self.lock:
            self.puts += 1
            ((uuid, part),) = allocation_request["allocations"].items()
            self.before_claim(consumer, uuid)
            held = self.consumers.get(consumer)
            if held is not None and not merge:
                raise ConsumerConflict(consumer=consumer, reason="consumer generation conflict")
            if held is not None:
                allocation_request = {"allocations": allocation_request["allocations"] | held["allocations"]}
                if uuid in held["allocations"]:
                    return True
            provider, resources = self.providers[uuid], part["resources"]
            if not provider.fits(resources):
                return False
            for name, amount in resources.items():
                provider.used[name] = provider.used.get(name, 0) + amount
            self.consumers[consumer] = allocation_request
            return True

    def post_allocations(self, body: dict[str, Any], version: str = "1.36") -> None:
        with self.lock:
            self.posts += 1
            done = []
            for consumer, row in body.items():
                try:
                    request = {key: row[key] for key in ("allocations", "mappings")}
                    if not self.claim(consumer, request, row["project_id"], row["user_id"]):
                        raise AllocationRefused(consumer=consumer, reason="no room")
                except Exception:
                    for taken in done:
                        self.delete_allocations(taken)
                    raise
                done.append(consumer)

    def allocations(self, consumer: str) -> dict[str, Any]:
        return self.consumers.get(consumer, {"allocations": {}})

    def put_allocations(
        self, consumer: str, allocations: dict[str, Any], project_id: str, user_id: str, *, generation: int | None,
        version: str = "1.36",
    ) -> None:  # fmt: skip
        self.delete_allocations(consumer)
        for uuid, part in allocations.items():
            assert self.claim(consumer, {"allocations": {uuid: part}}, project_id, user_id, merge=True)

    def aggregates(self, uuid: str) -> tuple[list[str], int]:
        if uuid not in self.providers:
            raise ProviderNotFound(provider=uuid)
        return sorted(self.providers[uuid].aggregates), 1

    def delete_allocations(self, consumer: str) -> bool:
        held = self.consumers.pop(consumer, None)
        if held is None:
            return False
        for uuid, part in held["allocations"].items():
            for name, amount in part["resources"].items():
                self.providers[uuid].used[name] -= amount
        return True

    def used(self, name: str = "VCPU") -> int:
        return sum(row.used.get(name, 0) for row in self.providers.values())


def _matches(provider: Provider, asked: Mapping[str, list[str]]) -> bool:
    for text in asked.get("member_of", []):
        wanted = set(text.removeprefix("!").removeprefix("in:").split(","))
        if bool(wanted & provider.aggregates) == text.startswith("!"):
            return False
    if "in_tree" in asked and asked["in_tree"] != [provider.uuid]:
        return False
    traits = ",".join(asked.get("required", []) + asked.get("root_required", []))
    return all((trait.lstrip("!") in provider.traits) != trait.startswith("!") for trait in traits.split(",") if trait)


def _summary(provider: Provider) -> dict[str, Any]:
    return {
        "resources": {
            name: {"capacity": total, "used": provider.used.get(name, 0)} for name, total in provider.capacity.items()
        },
        "traits": sorted(provider.traits),
        "parent_provider_uuid": None,
        "root_provider_uuid": provider.uuid,
    }


class Cloud:
    """Databases of one cell, and hosts added to them and to the fake Placement together."""

    def __init__(self, directory: Path) -> None:
        self.api = Database(f"sqlite:///{directory}/api.db")
        self._cells = {CELL: Database(f"sqlite:///{directory}/cell.db")}
        self.placement = FakePlacement()
        api_schema.metadata.create_all(self.api._writer)
        cell_schema.metadata.create_all(self._cells[CELL]._writer)
        with self.api.write() as connection:
            connection.execute(
                api_schema.cell_mappings.insert().values(
                    uuid=CELL, name="cell1", transport_url="none:", database_connection="none:", disabled=False
                )
            )

    def database(self, name: str) -> Database:
        return self._cells[name]

    @property
    def cell(self) -> Database:
        return self._cells[CELL]

    def close(self) -> None:
        self.api.dispose()
        self.cell.dispose()

    def add_hosts(self, *names: str, vcpus: int = 8, memory_mb: int = 16384, local_gb: int = 200, **row: Any) -> None:
        """Hosts of one agent that beats now."""
        now = clock.utcnow()
        rows = [_node(name, vcpus, memory_mb, local_gb, row) for name in names]
        with self.cell.write() as connection:
            if not connection.execute(cell_schema.agents.select()).all():
                connection.execute(
                    cell_schema.agents.insert().values(id="agent", epoch=1, version=1, last_seen_up=now)
                )
            connection.execute(
                cell_schema.services.insert(),
                [
                    {"uuid": ids.new_uuid(), "host": name, "agent": "agent"} | COMPUTE for name in names
                ],
            )
            connection.execute(cell_schema.compute_nodes.insert(), rows)
        for node in rows:
            self.placement.providers[node["uuid"]] = Provider(
                node["uuid"], {"VCPU": vcpus * 4, "MEMORY_MB": memory_mb, "DISK_GB": local_gb}, traits={"OWNER_NOVA"}
            )

    def uuid_of(self, host: str) -> str:
        with self.cell.read() as connection:
            table = cell_schema.compute_nodes
            return str(connection.execute(table.select().where(table.c.host == host)).one().uuid)

    def provider(self, host: str) -> Provider:
        return self.placement.providers[self.uuid_of(host)]

    def add_aggregate(self, name: str, hosts: tuple[str, ...], **metadata: str) -> str:
        """An aggregate, mirrored to the fake Placement."""
        uuid = ids.new_uuid()
        with self.api.write() as connection:
            made = connection.execute(api_schema.aggregates.insert().values(uuid=uuid, name=name))
            key = made.inserted_primary_key[0]
            for host in hosts:
                connection.execute(api_schema.aggregate_hosts.insert().values(aggregate_id=key, host=host))
            for word, value in metadata.items():
                connection.execute(
                    api_schema.aggregate_metadata.insert().values(aggregate_id=key, key=word, value=value)
                )
        for host in hosts:
            self.provider(host).aggregates.add(uuid)
        return uuid

    def change_service(self, host: str, **values: Any) -> None:
        table = cell_schema.services
        with self.cell.write() as connection:
            connection.execute(table.update().where(table.c.host == host).values(**values))


def _node(name: str, vcpus: int, memory_mb: int, local_gb: int, row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "uuid": ids.new_uuid(),
        "host": name,
        "hypervisor_hostname": f"{name}.example",
        "hypervisor_type": "QEMU",
        "hypervisor_version": 8002002,
        "vcpus": vcpus,
        "memory_mb": memory_mb,
        "local_gb": local_gb,
        "free_ram_mb": memory_mb,
        "free_disk_gb": local_gb,
        "cpu_info": '{"arch":"x86_64","features":["aes"]}',
        "supported_instances": '[["x86_64","qemu","hvm"],["i686","qemu","hvm"]]',
        "stats": "{}",
        "metrics": "[]",
        "cpu_allocation_ratio": 4.0,
        "ram_allocation_ratio": 1.0,
        "disk_allocation_ratio": 1.0,
        **row,
    }
