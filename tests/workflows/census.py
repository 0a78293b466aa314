"""What there is in a cloud, and whether it is exactly what the servers that survive need."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from kilonova.compute.accelerators import profile_of
from kilonova.core.server import BlockDevice, Server
from kilonova.db import api_schema, cell_schema
from kilonova.db.queries import block_devices, servers
from kilonova.embedded.network.tables import PORTS
from kilonova.embedded.volumes.tables import ATTACHMENTS, VOLUMES
from kilonova.placement.store import schema as placement
from kilonova.workflows.disks import OUR_KEY
from tests.workflows.cloud import Cloud
from tests.workflows.harness import live_rows

Census = dict[str, Any]


def living(cloud: Cloud) -> dict[str, tuple[str, Server]]:
    """uuid: (cell's file, server) of all that are not deleted."""
    found = {}
    for name in ("cell0", "cell1"):
        with cloud.files[name].read() as c:
            for row in c.execute(sa.select(*servers.COLUMNS).where(cell_schema.instances.c.deleted == sa.false())):
                server = servers.from_row(row)
                assert server.uuid not in found, f"{server.uuid} is in two cells"
                found[server.uuid] = (name, server)
    return found


def _rows(cloud: Cloud, name: str, statement: Any) -> list[Any]:
    with cloud.files[name].read() as c:
        return list(c.execute(statement))


def allocations(cloud: Cloud) -> set[tuple[str, str, str, int]]:
    """(consumer, provider, class, used)."""
    a, consumer, provider = placement.allocations.c, placement.consumers.c, placement.resource_providers.c
    kind = placement.resource_classes.c
    statement = sa.select(consumer.uuid, provider.uuid, kind.name, a.used).where(
        a.consumer_id == consumer.id, a.provider_id == provider.id, a.class_id == kind.id
    )
    return {(str(row[0]), str(row[1]), row[2], row[3]) for row in _rows(cloud, "placement", statement)}


def used_up(cloud: Cloud) -> bool:
    """Whether Placement's own sums agree with its allocations."""
    a, i = placement.allocations.c, placement.inventories.c
    total = sa.select(sa.func.coalesce(sa.func.sum(a.used), 0)).scalar_subquery()
    return bool(_rows(cloud, "placement", sa.select(sa.func.sum(i.used) == total))[0][0])


def ports(cloud: Cloud) -> dict[str, tuple[str, str]]:
    """id: (device, host) of the ports that are servers'."""
    found = _rows(cloud, "network", sa.select(PORTS).where(PORTS.c.device_owner.like("compute:%")))
    return {row.id: (row.device_id, row.binding_host_id) for row in found}


def attachments(cloud: Cloud) -> dict[str, tuple[str, str]]:
    """id: (volume, server)."""
    return {row.id: (row.volume_id, row.instance_uuid) for row in _rows(cloud, "volumes", sa.select(ATTACHMENTS))}


def volumes(cloud: Cloud) -> dict[str, tuple[str, str | None]]:
    """id: (status, the device it was made for)."""
    found = _rows(cloud, "volumes", sa.select(VOLUMES))
    return {row.id: (row.status, row.metadata.get(OUR_KEY)) for row in found}


def guests(cloud: Cloud) -> set[tuple[str, str]]:
    """(server, host)."""
    return {(guest.server, host) for host in cloud.driver.hosts() for guest in cloud.driver.guests(host)}


def assert_stable(cloud: Cloud, *, kept_volumes: frozenset[str] = frozenset()) -> dict[str, Server]:
    """Every server is ACTIVE, or ERROR with a fault; everything outside is what those need and nothing else.

    kept_volumes: those that may exist without a server: a user's own.
    """
    alive = living(cloud)
    assert live_rows(cloud.world) == []
    for name, server in alive.values():
        _assert_settled(cloud, name, server)
    on_hosts = [server for _, server in alive.values() if server.vm_state == "active"]
    assert allocations(cloud) == {
        one for server in on_hosts for one in (*_needed(server), *cloud.cyborg.used_by(server.uuid))
    }
    assert {arq["instance_uuid"] for arq in cloud.cyborg.arqs.values()} == {
        server.uuid for server in on_hosts if profile_of(server.flavor.get("extra_specs") or {})
    }
    assert all(arq["state"] == "Bound" for arq in cloud.cyborg.arqs.values())
    assert used_up(cloud)
    assert ports(cloud) == {
        vif["id"]: (server.uuid, server.host) for server in on_hosts for vif in server.network_info
    }
    assert guests(cloud) == {(server.uuid, server.host) for server in on_hosts}
    _assert_volumes(cloud, on_hosts, kept_volumes)
    _assert_api(cloud, alive)
    _assert_journal(cloud)
    return {uuid: server for uuid, (_, server) in alive.items()}


def _assert_settled(cloud: Cloud, name: str, server: Server) -> None:
    assert server.vm_state in ("active", "error"), server.vm_state
    assert server.task_state is None, server.task_state
    if server.vm_state == "active":
        assert (name, bool(server.host and server.node and server.launched_at)) == ("cell1", True)
        assert server.power_state == 1
        power = {guest.server: guest.power_state for guest in cloud.driver.guests(server.host)}
        assert power.get(server.uuid) == 1, "the guest does not run"
        return
    assert (server.host, server.network_info, server.attachments) == (None, [], [])
    fault = servers.faults_of(cloud.files[name], [server.uuid]).get(server.uuid)
    assert fault is not None, "an ERROR without a fault"
    assert fault.message


def _needed(server: Server) -> list[tuple[str, str, str, int]]:
    wanted = {"VCPU": server.vcpus, "MEMORY_MB": server.memory_mb, "DISK_GB": server.root_gb + server.ephemeral_gb}
    local = not any(device.get("id") for device in server.attachments) or server.image_ref
    if not local:
        wanted["DISK_GB"] = server.ephemeral_gb
    return [(server.uuid, str(server.compute_id), name, amount) for name, amount in wanted.items() if amount]


def _assert_volumes(cloud: Cloud, on_hosts: list[Server], kept: frozenset[str]) -> None:
    devices: list[tuple[Server, BlockDevice]] = [
        (server, device)
        for server in on_hosts
        for device in block_devices.of(cloud.files["cell1"], server.uuid)
        if device.destination_type == "volume"
    ]
    assert attachments(cloud) == {
        str(device.attachment_id): (device.volume_id, server.uuid) for server, device in devices
    }
    for server, device in devices:
        assert device.volume_id in {entry["id"] for entry in server.attachments}
        assert device.connection_info
    there = volumes(cloud)
    used = {str(device.volume_id) for _, device in devices}
    assert set(there) == used | kept, "volumes without a server"
    for volume, (status, _) in there.items():
        assert status == ("in-use" if volume in used else "available"), (volume, status)


def _assert_api(cloud: Cloud, alive: dict[str, tuple[str, Server]]) -> None:
    assert _rows(cloud, "api", sa.select(api_schema.build_requests)) == []
    mapped = _rows(cloud, "api", sa.select(api_schema.instance_mappings))
    assert all(row.cell_uuid for row in mapped)
    counted = {row.instance_uuid for row in mapped if not row.queued_for_delete}
    assert counted == set(alive), "what counts against the quota is not what there is"


def _assert_journal(cloud: Cloud) -> None:
    for name in ("cell0", "cell1"):
        assert _rows(cloud, name, sa.select(cell_schema.workflow_events)) == []
        open_actions = sa.select(cell_schema.instance_actions).where(
            cell_schema.instance_actions.c.finish_time.is_(None)
        )
        open_events = sa.select(cell_schema.instance_actions_events).where(
            cell_schema.instance_actions_events.c.finish_time.is_(None)
        )
        assert _rows(cloud, name, open_actions) == []
        assert _rows(cloud, name, open_events) == []
