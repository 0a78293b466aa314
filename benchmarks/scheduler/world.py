"""A region to decide in: hosts in the cell's tables and as rows in Placement's, ten zones, traits and flavors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from kilonova.clients.placement import HttpPlacement
from kilonova.clients.rest import FixedToken, RestClient
from kilonova.core import clock, ids
from kilonova.core.context import Context
from kilonova.core.request_spec import FlavorSpec, GroupSpec, RequestSpec
from kilonova.db import api_schema
from kilonova.http.transport import WsgiTransport
from kilonova.placement.app import make_app
from kilonova.placement.store import schema
from kilonova.placement.store.prepare import prepare
from kilonova.scheduler.settings import DEFAULT_FILTERS
from kilonova.sql.engine import Database
from tests.scheduler.world import Cloud, Provider, spec_of

ZONES = 10
TRAIT = "HW_CPU_X86_AVX512F"
SIZES = {"vcpus": 64, "memory_mb": 262144, "local_gb": 4000}
CHUNK = 2000

FLAVORS = tuple(
    FlavorSpec(id=number, flavorid=str(number), name=f"f{number}", memory_mb=memory, vcpus=vcpus, root_gb=disk)
    for number, (vcpus, memory, disk) in enumerate(((1, 1024, 10), (2, 4096, 20), (4, 8192, 40), (8, 32768, 80)), 1)
)
WITH_TRAIT = FlavorSpec(id=9, flavorid="9", name="avx", memory_mb=4096, vcpus=2, root_gb=20,
                        extra_specs={f"trait:{TRAIT}": "required"})  # fmt: skip
CONFINED = FlavorSpec(id=8, flavorid="8", name="ssd", memory_mb=4096, vcpus=2, root_gb=20,
                      extra_specs={"aggregate_instance_extra_specs:ssd": "true"})  # fmt: skip


@dataclass(frozen=True)
class Kind:
    """A kind of request. spec: makes the next one. options: of the scheduler."""

    spec: Callable[[], RequestSpec]
    options: Mapping[str, Any] = field(default_factory=dict)


def kinds() -> dict[str, Kind]:
    """By name: flavors mixed; a zone and filters that read aggregates; groups; a trait that half the hosts have."""
    flavors, zones = cycle(FLAVORS), cycle(range(ZONES))
    aggregates = (*DEFAULT_FILTERS, "AggregateInstanceExtraSpecsFilter", "NectarAggregateMultiTenancyIsolation")
    return {
        "plain": Kind(lambda: spec_of(next(flavors))),
        "aggregates": Kind(
            lambda: spec_of(CONFINED, availability_zone=f"zone-{next(zones)}"), {"enabled_filters": aggregates}
        ),
        "groups": Kind(lambda: spec_of(next(flavors), group=GroupSpec(uuid=ids.new_uuid(), policy="anti-affinity"))),
        "traits": Kind(lambda: spec_of(WITH_TRAIT)),
    }


@dataclass
class Region:
    """What a scheduler needs."""

    cloud: Cloud
    client: HttpPlacement
    database: Database

    def close(self) -> None:
        """Let the databases go."""
        self.cloud.close()
        self.database.dispose()


def region(directory: Path, hosts: int) -> Region:
    """So many hosts, each in one zone; every second has the trait."""
    database = Database(f"sqlite:///{directory}/placement.db")
    prepare(database)
    cloud = Cloud(directory)
    names = [f"h{number}" for number in range(hosts)]
    for start in range(0, hosts, CHUNK):
        cloud.add_hosts(*names[start : start + CHUNK], **SIZES)
    providers = list(cloud.placement.providers.values())
    for zone in range(ZONES):
        metadata = {"availability_zone": f"zone-{zone}", "ssd": "true", "cpu_weight_multiplier": "1.5"}
        _aggregate(cloud, f"zone-{zone}", names[zone::ZONES], providers[zone::ZONES], metadata)
    for provider in providers[::2]:
        provider.traits.add(TRAIT)
    _fill(database, providers)
    return Region(cloud, _client(database), database)


def _aggregate(cloud: Cloud, name: str, hosts: list[str], providers: list[Provider], metadata: dict[str, str]) -> None:
    uuid = cloud.add_aggregate(name, (), **metadata)
    table = api_schema.aggregates.c
    with cloud.api.write() as connection:
        key = connection.execute(sa.select(table.id).where(table.uuid == uuid)).scalar()
        rows = [{"aggregate_id": key, "host": host} for host in hosts]
        if rows:
            connection.execute(api_schema.aggregate_hosts.insert(), rows)
    for provider in providers:
        provider.aggregates.add(uuid)


def _fill(database: Database, providers: list[Provider]) -> None:
    """Providers as rows: through the API a hundred thousand take minutes."""
    now = clock.utcnow()
    stamps = {"created_at": now, "updated_at": now}
    ratios = {"VCPU": 4}
    with database.write() as connection:
        classes = {row.name: row.id for row in connection.execute(sa.select(schema.resource_classes))}
        traits = {row.name: row.id for row in connection.execute(sa.select(schema.traits))}
        for start in range(0, len(providers), CHUNK):
            some = list(enumerate(providers[start : start + CHUNK], start + 1))
            connection.execute(sa.insert(schema.resource_providers), [
                {"id": n, "uuid": one.uuid, "name": one.uuid, "generation": 1, "root_id": n, "parent_id": None,
                 **stamps}
                for n, one in some
            ])  # fmt: skip
            connection.execute(sa.insert(schema.inventories), [
                {"provider_id": n, "class_id": classes[name], "total": total // ratios.get(name, 1), "reserved": 0,
                 "min_unit": 1, "max_unit": total, "step_size": 1, "allocation_ratio": float(ratios.get(name, 1)),
                 "capacity": total, "used": 0, **stamps}
                for n, one in some for name, total in one.capacity.items()
            ])  # fmt: skip
            connection.execute(sa.insert(schema.provider_traits), [
                {"provider_id": n, "trait_id": traits[name]} for n, one in some for name in one.traits
            ])  # fmt: skip
            connection.execute(sa.insert(schema.provider_aggregates), [
                {"provider_id": n, "aggregate": name} for n, one in some for name in one.aggregates
            ])  # fmt: skip


def _client(database: Database) -> HttpPlacement:
    app = make_app(database)

    def as_admin(environ: dict[str, Any], start_response: Any) -> Any:
        environ["kilonova.context"] = Context(overwrite=False, roles=["admin"], project_id="p", user_id="u")
        return app(environ, start_response)

    rest = RestClient("placement", "http://here", WsgiTransport(as_admin), FixedToken("t"), microversion="placement")
    return HttpPlacement(rest)
