"""Workflow `build`, in the server's cell: from a claimed host to ACTIVE, trying alternates, leaving nothing behind.

Order (workflow-facts.md 6.1): claim, accelerators where the flavor asks for them, networking, block devices, spawn
(paused while interfaces are not plugged), wait for `network-vif-plugged`, run. Errors of accelerators, network, image,
quota and block devices end the build; what may be the host's own fault is tried on the next alternate.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import msgspec

from kilonova.bus.calls import Destroy, GuestSpec, Power, Spawn, Ticket, guest_destroy, guest_power, guest_spawn
from kilonova.compute.availability import zone_of_host
from kilonova.compute.world import World
from kilonova.core import clock, json, states
from kilonova.core.errors import KilonovaError
from kilonova.core.pci.placement import providers_of
from kilonova.core.pci.requests import from_text
from kilonova.core.request_spec import Selection
from kilonova.core.server import BlockDevice, Server, ServerExtra
from kilonova.db.queries import block_devices, compute_nodes, servers
from kilonova.sql.engine import Connection
from kilonova.workflows import accelerators, disks, guests, ports
from kilonova.workflows.step import NOTHING, Alternates, Done, Failure, Outcome, Parked, Run, Step, Workflow, Write
from kilonova.workflows.verbs import verb

_LEAVING = ("deleting", "soft-deleting")
_ASK_EACH = 30.0  # seconds that a lost event may hold up a server


class ServerGone(KilonovaError):
    """The server's row is deleted: there is nothing to build."""

    status, code, message = 404, "cancelled", "Server {server} is gone."


class NoMoreHosts(KilonovaError):
    """The alternate could not be claimed either."""

    status, code, message = 500, "claim_failed", "Host {host} has no room any more."
    retriable = True


class VifsNotPlugged(KilonovaError):
    """The network service did not say in time that the interfaces work."""

    status, code = 500, "vifs_not_plugged"
    message = "Virtual Interface creation failed: no network-vif-plugged for {ports} within {seconds} seconds."


class VolumeNotMade(KilonovaError):
    """A volume that the server needs did not become available."""

    status, code, message = 500, "volume_not_made", "Build failed: volume {volume} is {state}, not available."


def _server(world: World, run: Run) -> Server:
    server = servers.get(world.cells.database(run.database), run.subject)
    if server is None:
        raise ServerGone(server=run.subject)
    return server


def _there(world: World, run: Run) -> bool:
    return servers.get(world.cells.database(run.database), run.subject) is not None


def _again(run: Run) -> bool:
    """Whether an earlier try of the step may have left something outside."""
    return run.epoch > 1 or run.tries > 0


def _selection(run: Run) -> dict[str, Any]:
    found: dict[str, Any] = run.params["selections"][run.attempt - 1]
    return found


# -- claim -------------------------------------------------------------------------------------------------------


def claim(world: World, run: Run) -> Done:
    """The first host was claimed by the scheduler; an alternate is claimed here."""
    if run.attempt == 1:
        return Done()
    chosen = msgspec.convert(_selection(run), Selection)
    server = _server(world, run)
    request = json.loads(chosen.allocation_request)
    if _again(run):
        world.placement.delete_allocations(run.subject)
    claimed = world.placement.claim(
        run.subject, request, server.project_id, server.user_id, version=chosen.allocation_request_version
    )
    if not claimed:
        raise NoMoreHosts(host=chosen.host)
    zone = zone_of_host(world, chosen.host)
    values = {"host": chosen.host, "node": chosen.node, "launched_on": chosen.host,
              "compute_id": chosen.provider_uuid, "availability_zone": zone}  # fmt: skip
    return Done(write=lambda connection: _set(connection, run.subject, values))


def unclaim(world: World, run: Run) -> Done:
    """Give the room back and leave the host."""
    world.placement.delete_allocations(run.subject)
    values = {"host": None, "node": None, "compute_id": None}

    def write(connection: Connection) -> None:
        if run.failure is not None and run.failure.code != "cancelled":
            compute_nodes.count_build(connection, _selection(run)["host"], failed=True)
        servers.set_topology(connection, run.subject, None)
        _set(connection, run.subject, values)

    return Done(write=write)


def _set(connection: Connection, uuid: str, values: dict[str, Any]) -> None:
    servers.change(connection, uuid, values)


# -- networking ----------------------------------------------------------------------------------------------------


def networking(world: World, run: Run) -> Done:
    """Make or take over the ports and bind them to the host."""
    server, interfaces = _server(world, run), run.params["interfaces"]
    if any(entry.get("resource_request") for entry in interfaces):
        interfaces = ports.with_allocations(interfaces, json.loads(_selection(run)["allocation_request"])["mappings"])
    made: list[str] = []
    wanted = len(interfaces)
    run.if_lost(lambda: ports.drop_surplus(world, run.subject, made, wanted if _there(world, run) else 0))
    vifs = ports.ensure(world, server, interfaces, run.params["groups"], look=_again(run), made=made)
    if not vifs:
        return Done({"vifs": []})
    return Done({"vifs": vifs}, lambda connection: _set(connection, run.subject, {"network_info": vifs}))


def no_networking(world: World, run: Run) -> Done:
    """Remove the ports that are ours and unbind the others."""
    interfaces = run.params["interfaces"]
    if interfaces:
        ports.release(world, run.subject, [entry["port"] for entry in interfaces if entry["port"]])
    return Done(write=lambda connection: _set(connection, run.subject, {"network_info": []}))


# -- block devices ---------------------------------------------------------------------------------------------------


def devices(world: World, run: Run) -> Outcome:
    """Make the volumes, wait until they can be used, attach them."""
    database = world.cells.database(run.database)
    mapped = block_devices.of(database, run.subject)
    wanted = disks.volumes_of(mapped)
    if not wanted:
        return Done({"disks": [disks.disk_of(device, None) for device in mapped]})
    server = _server(world, run)
    look = _again(run) or "volumes" in run.notes
    if "volumes" not in run.notes:
        run.note("volumes", True)
    waiting = False
    volumes: dict[str, dict[str, Any]] = {}
    for device in wanted:
        volume = disks.ensure_volume(world, run.ctx, server, device, look=look)
        run.if_lost(partial(disks.drop_twin, world, run.ctx, device, volume["id"], lambda: _there(world, run)))
        volumes[device.uuid] = volume
        if volume["status"] not in ("available", "in-use", "reserved", "attaching"):
            if volume["status"] not in ("creating", "downloading"):
                raise VolumeNotMade(volume=volume["id"], state=volume["status"])
            waiting = True
    if waiting:
        settings = world.settings
        patience = settings.block_device_allocate_retries * settings.block_device_allocate_retries_interval
        if run.elapsed > patience:
            raise VolumeNotMade(volume=next(iter(volumes.values()))["id"], state="creating")
        return Parked((), min(settings.block_device_allocate_retries_interval, 0.05 + run.elapsed))
    return _attached(world, run, server, mapped, volumes, look)


def _attached(
    world: World, run: Run, server: Server, mapped: list[BlockDevice], volumes: dict[str, dict[str, Any]], look: bool
) -> Done:
    names = {device.uuid: device.device_name for device in mapped}
    attachments = {
        uuid: disks.attach(world, run.ctx, server, volume["id"], names[uuid], look=look)
        for uuid, volume in volumes.items()
    }
    known = [msgspec.structs.replace(device, volume_id=volumes[device.uuid]["id"]) if device.uuid in volumes else device
             for device in mapped]  # fmt: skip
    documents = [disks.disk_of(device, attachments.get(device.uuid)) for device in known]
    shown = [{"id": volumes[device.uuid]["id"], "delete_on_termination": device.delete_on_termination}
             for device in mapped if device.uuid in volumes]  # fmt: skip

    def write(connection: Connection) -> None:
        for uuid, attachment in attachments.items():
            block_devices.change(
                connection, uuid, volume_id=volumes[uuid]["id"], attachment_id=attachment["id"],
                connection_info=disks.connection_text(attachment),
            )  # fmt: skip
        _set(connection, run.subject, {"attachments": shown})

    return Done({"disks": documents, "attachments": [entry["id"] for entry in attachments.values()]}, write)


def no_devices(world: World, run: Run) -> Done:
    """Detach the volumes, delete those we made, and forget them."""
    mapped = block_devices.of(world.cells.database(run.database), run.subject)
    wanted = disks.volumes_of(mapped)
    if not wanted:
        return Done()
    disks.take_back(world, run.ctx, run.subject, wanted)

    def write(connection: Connection) -> None:
        for device in wanted:
            made = device.source_type != "volume"
            block_devices.change(connection, device.uuid, attachment_id=None, connection_info=None)
            if made:
                block_devices.change(connection, device.uuid, volume_id=None)
        _set(connection, run.subject, {"attachments": []})

    return Done(write=write)


# -- spawn -----------------------------------------------------------------------------------------------------------


def _paused(world: World, run: Run) -> bool:
    return bool(world.settings.vif_plugging_timeout and _waited_for(run))


def _waited_for(run: Run) -> list[str]:
    """The ports whose plugging is waited for; the same at every call, whatever has arrived meanwhile."""
    return [vif["id"] for vif in run.outputs["networking"]["vifs"] if not vif["active"]]


def guest_of(server: Server, extra: ServerExtra, vifs: list[dict[str, Any]], disk_documents: list[dict[str, Any]],
             password: str | None) -> GuestSpec:  # fmt: skip
    """A server as its hypervisor needs to know it."""
    return GuestSpec(
        uuid=server.uuid, name=server.display_name, hostname=server.hostname, project_id=server.project_id,
        user_id=server.user_id, vcpus=server.vcpus, memory_mb=server.memory_mb, root_gb=server.root_gb,
        ephemeral_gb=server.ephemeral_gb, swap_mb=int(server.flavor.get("swap") or 0),
        image={"id": server.image_ref, "properties": server.image_properties}, flavor=server.flavor,
        vifs=tuple(vifs), disks=tuple(disk_documents), metadata=server.metadata, admin_password=password,
        user_data=extra.user_data, key_data=server.key_data, config_drive=server.config_drive,
        pci_requests=from_text(extra.pci_requests) if extra.pci_requests else (),
    )  # fmt: skip


def _spawn(world: World, run: Run, ticket: Ticket) -> Spawn:
    database = world.cells.database(run.database)
    server = _server(world, run)
    extra = servers.extras(database, [run.subject]).get(run.subject, ServerExtra())
    vifs = run.outputs["networking"]["vifs"]
    guest = guest_of(server, extra, vifs, run.outputs["block_devices"]["disks"], run.params.get("password"))
    chosen = _selection(run)
    bound = run.outputs.get("accelerators", {}).get("arqs")
    if bound:
        guest = msgspec.structs.replace(guest, accelerators=tuple(bound))
    cards: dict[str, list[str]] = {}
    if guest.pci_requests:
        cards = providers_of(guest.pci_requests, json.loads(chosen["allocation_request"]).get("mappings") or {})
    limits = chosen.get("limits") or {}
    return Spawn(ticket, guest, paused=_paused(world, run), limits=limits, devices_from=cards)


def _spawned(_world: World, run: Run, result: dict[str, Any]) -> Write | None:
    """What of its host the guest has for itself is kept with the server."""
    topology = result.get("numa_topology")
    return (lambda connection: servers.set_topology(connection, run.subject, topology)) if topology else None


def _host(run: Run) -> str:
    return str(_selection(run)["host"])


def _resume(world: World, run: Run) -> Outcome:
    seconds = world.settings.vif_plugging_timeout + 600  # of the whole step, the waiting included
    act = verb(guest_power, build=lambda world, run, ticket: Power(ticket, "running"), host=_host, seconds=seconds)
    return guests.while_up(act, _host, guests.failed)(world, run)


def plugged(world: World, run: Run) -> Outcome:
    """Wait until the network service says that every interface works, then let the guest, held until now, run.

    What it says may be lost on its way, so it is asked as well: now and then, and after an adoption.
    """
    if not _paused(world, run):
        return Done()
    waited = _waited_for(run)
    failed = [port for port in waited if _event_failed(run, port)]
    known = run.notes.get("plugged", ())
    missing = [port for port in waited if port not in known and run.event("network-vif-plugged", port) is None]
    left = world.settings.vif_plugging_timeout - run.elapsed
    if missing and (run.expired or run.epoch > 1):
        active = [port["id"] for port in world.network.list_ports(device_id=run.subject) if port["status"] == "ACTIVE"]
        missing = [port for port in missing if port not in active]
        if active != known:
            run.note("plugged", active)
    if missing and left > 0 and not failed:
        return Parked([("network-vif-plugged", port) for port in missing], min(left, _ASK_EACH))
    if (missing or failed) and world.settings.vif_plugging_is_fatal:
        ports_text = ", ".join(failed or missing)
        raise VifsNotPlugged(ports=ports_text, seconds=world.settings.vif_plugging_timeout)
    return _resume(world, run)


def _event_failed(run: Run, port: str) -> bool:
    event = run.event("network-vif-plugged", port)
    return event is not None and event.payload.get("status") == "failed"


def complete(world: World, run: Run) -> Write:
    """Tell the volume service that the volumes are in use; then the server is ACTIVE."""
    for attachment in run.outputs["block_devices"].get("attachments", ()):
        world.volumes.complete_attachment(run.ctx, attachment)
    host = _host(run)

    def write(connection: Connection) -> None:
        values = {"vm_state": states.ACTIVE, "task_state": None, "power_state": states.RUNNING, "progress": 0,
                  "launched_at": clock.utcnow()}  # fmt: skip
        if not servers.change(connection, run.subject, values, not_tasks=_LEAVING):
            values.pop("task_state")  # it is being deleted: what it has become is told, the deleting goes on
            servers.change(connection, run.subject, values)
        compute_nodes.count_build(connection, host, failed=False)

    return write


def failed(world: World, run: Run, failure: Failure) -> Write:
    """Nothing is left outside; the server says what went wrong."""

    def write(connection: Connection) -> None:
        if failure.code == "cancelled":
            return
        values = {"vm_state": states.ERROR, "task_state": None, "power_state": states.NOSTATE, "host": None,
                  "node": None, "compute_id": None}  # fmt: skip
        servers.change(connection, run.subject, values, not_tasks=_LEAVING)

    return write


def next_candidate(world: World, run: Run) -> bool:
    """Whether the scheduler gave one more alternate."""
    return run.attempt < len(run.params["selections"])


def retriable(failure: Failure) -> bool:
    """Whether another host may do better: not when the user cancelled."""
    return failure.retriable and failure.code != "cancelled"


def _build(name: str, *more: Step) -> Workflow:
    """The workflow, with more steps behind the claim."""
    destroyed = verb(guest_destroy, build=lambda world, run, ticket: Destroy(ticket), host=_host, seconds=600)
    steps = (
        Step("claim", claim, unclaim, event="compute__do_build_and_run_instance"),
        *more,
        Step("networking", networking, no_networking, task_state="networking", tries=3),
        Step("block_devices", devices, no_devices, task_state="block_device_mapping", tries=3),
        Step(
            "spawn",
            guests.while_up(verb(guest_spawn, build=_spawn, host=_host, write=_spawned), _host, guests.failed),
            guests.while_up(destroyed, _host, guests.left),
            task_state="spawning",
        ),
        Step("plug", plugged, NOTHING, tries=3),
    )
    alternates = Alternates(steps, next_candidate=next_candidate, retriable=retriable)
    return Workflow(name, (alternates,), action="create", on_done=complete, on_failed=failed)


BUILD = _build("build")
BUILD_WITH_ACCELERATORS = _build(
    "build_with_accelerators", Step("accelerators", accelerators.bind, accelerators.release, tries=3)
)
