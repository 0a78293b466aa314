"""Servers with all that a representation of them needs, read for a whole list at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kilonova.compute.lookup import Found
from kilonova.compute.world import World
from kilonova.core import clock, liveness
from kilonova.core.context import Context
from kilonova.core.errors import KilonovaError
from kilonova.core.request_spec import RequestSpec
from kilonova.core.server import Fault, Server, ServerExtra
from kilonova.db.queries import requests, server_groups, servers, services
from kilonova.db.queries.services import Service

NO_EXTRA = ServerExtra()


@dataclass(frozen=True, slots=True)
class Shown:
    """A server and what belongs to it. What was not asked for is None or empty.

    security_groups: names, one per port and group; None when the server's ports have none.
    """

    server: Server
    scheduled: bool
    fault: Fault | None = None
    tags: Sequence[str] = ()
    extra: ServerExtra = NO_EXTRA
    host_status: str = ""
    groups: Sequence[str] = ()
    spec: RequestSpec | None = None
    security_groups: Sequence[str] | None = None

    @property
    def project_id(self) -> str:
        """For policy rules."""
        return self.server.project_id

    @property
    def user_id(self) -> str:
        """For policy rules."""
        return self.server.user_id


@dataclass(frozen=True, slots=True)
class Wants:
    """Which parts a version's representation has, so that nothing is read in vain."""

    tags: bool = False
    extra: bool = False
    host_status: bool = False
    groups: bool = False
    spec: bool = False
    security_groups: bool = True


def one(world: World, ctx: Context, found: Found, wants: Wants) -> Shown:
    """One server with its parts."""
    groups: list[str] = []
    if wants.groups:
        group = server_groups.group_of(world.cells.api, found.server.uuid)
        groups = [group] if group else []
    shown = several(world, ctx, [found], wants)[0]
    return Shown(
        shown.server, shown.scheduled, shown.fault, shown.tags, shown.extra, shown.host_status, groups, shown.spec,
        shown.security_groups,
    )  # fmt: skip


def several(world: World, ctx: Context, found: Sequence[Found], wants: Wants) -> list[Shown]:
    """Servers with their parts, a query per part and cell."""
    by_cell: dict[str, list[str]] = {}
    for item in found:
        if item.cell is not None:
            by_cell.setdefault(item.cell, []).append(item.server.uuid)
    faults: dict[str, Fault] = {}
    tags: dict[str, list[str]] = {}
    extras: dict[str, ServerExtra] = {}
    bad = {item.server.uuid for item in found if item.server.vm_state in ("error", "deleted") or item.server.deleted}
    for cell, uuids in by_cell.items():
        database = world.cells.database(cell)
        failing = [uuid for uuid in uuids if uuid in bad]
        if failing:
            faults |= servers.faults_of(database, failing)
        if wants.tags:
            tags |= servers.tags_of(database, uuids)
        if wants.extra:
            extras |= servers.extras(database, uuids)
    specs = requests.specs(world.cells.api, [item.server.uuid for item in found]) if wants.spec else {}
    statuses = _host_statuses(world, found) if wants.host_status else {}
    groups = _security_groups(world, ctx, [item.server for item in found]) if wants.security_groups else {}
    return [
        Shown(
            item.server, item.cell is not None, faults.get(item.server.uuid),
            tags.get(item.server.uuid, item.request.tags if item.request else ()),
            extras.get(item.server.uuid, item.request.extra if item.request else NO_EXTRA),
            statuses.get(item.server.host or "", ""), (), specs.get(item.server.uuid),
            groups.get(item.server.uuid, _asked_groups(item.server)),
        )
        for item in found
    ]  # fmt: skip


def _asked_groups(server: Server) -> list[str] | None:
    """Until the server has ports, the groups that were asked for."""
    if server.network_info or server.host:
        return None
    return server.security_groups or ["default"]


def _security_groups(world: World, ctx: Context, listed: Sequence[Server]) -> dict[str, list[str]]:
    with_ports = [server for server in listed if server.network_info]
    if not with_ports:
        return {}
    try:
        ports = _ports_of(world, with_ports)
        ids = sorted({group for port in ports for group in port.get("security_groups") or ()})
        groups = world.network.list_security_groups(id=ids, fields=["id", "name"]) if ids else []
    except KilonovaError:  # the list must not fail because the network service does
        return {}
    names = {group["id"]: group.get("name") or group["id"] for group in groups}
    found: dict[str, list[str]] = {}
    for port in ports:
        for group in port.get("security_groups") or ():
            found.setdefault(port["device_id"], []).append(names.get(group, group))
    return found


def _ports_of(world: World, listed: Sequence[Server]) -> list[dict[str, Any]]:
    if len(listed) > 100:  # one question for all is shorter than a URL with every id
        projects = sorted({server.project_id for server in listed})
        return world.network.list_ports(tenant_id=projects, fields=["device_id", "security_groups"])
    return world.network.list_ports(
        device_id=[server.uuid for server in listed], fields=["device_id", "security_groups"]
    )


def _host_statuses(world: World, found: Sequence[Found]) -> dict[str, str]:
    hosts = sorted({item.server.host for item in found if item.server.host})
    if not hosts:
        return {}
    known: dict[str, Service] = {}
    for cell in world.cells:
        with cell.database.read() as connection:
            known |= services.services_of(connection, hosts)
    now, down_time = clock.utcnow(), world.settings.service_down_time
    return {
        host: liveness.host_status(
            up=service.up(now, down_time), disabled=service.disabled, forced_down=service.forced_down
        )
        for host, service in known.items()
    }
