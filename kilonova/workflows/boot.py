"""Workflow `boot`, in the API database: choose hosts for the servers of one request, hand each over to its cell.

The hand-over's fixed order: (1) in the cell, server row and its own workflow `build`, held, insert if absent;
(2) in the API database, cell into the mapping and the build request gone; then the held workflow is let go. A build
request that is gone already means that the user cancelled: (1) is taken back and the allocation with it. A server
for which there is no host goes to cell0 in the same way, in ERROR with a fault. Every part looks before it acts, so
the step can be run again after a crash anywhere.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

import msgspec

from kilonova.bus.calls import SelectDestinations, select_destinations
from kilonova.cells.cells import CELL0
from kilonova.compute.accelerators import profile_of
from kilonova.compute.availability import zone_of_host
from kilonova.compute.waking import wake
from kilonova.compute.world import World
from kilonova.core import clock, ids, states
from kilonova.core.context import Context
from kilonova.core.request_spec import GroupSpec, RequestSpec, Selection
from kilonova.core.scheduling import NoValidHost
from kilonova.db.queries import actions, block_devices, journal, requests, servers
from kilonova.sql.engine import Connection
from kilonova.workflows.step import NOTHING, Done, Run, Step, Workflow

LOG = logging.getLogger(__name__)

_SELECTIONS = msgspec.json.Decoder(list[Selection])


def schedule(world: World, run: Run) -> Done:
    """Have the scheduler choose and claim hosts, for all servers or for none. With a `fault` none are looked for."""
    uuids: list[str] = run.params["servers"]
    if "fault" in run.params:
        return Done({"selections": {}, "fault": run.params["fault"]})
    if run.epoch > 1 or run.tries:  # an earlier try may have claimed without our knowing
        _release(world, uuids)
    pending = requests.several(world.cells.api, uuids)
    wanted = [uuid for uuid in uuids if uuid in pending]
    if not wanted:
        return Done({"selections": {}})
    specs = requests.specs(world.cells.api, wanted[:1]) or requests.specs(world.cells.api, wanted)
    if not specs:  # all were deleted in this moment
        return Done({"selections": {}})
    spec = next(iter(specs.values()))
    if spec.group is not None:
        spec = msgspec.structs.replace(spec, group=_with_hosts(world, spec.group))
    request = SelectDestinations(msgspec.structs.replace(spec, num_instances=len(wanted)), tuple(wanted))
    asked_at = clock.monotonic()
    try:
        answer = world.bus.call(select_destinations, request, ctx=run.ctx)
    except NoValidHost as error:
        LOG.error("Failed to schedule instances %s: %s", ", ".join(wanted), error.text)
        details = str(error.details.get("explanation", ""))
        return Done({"selections": {}, "fault": {"code": 500, "text": error.text, "details": details}})
    LOG.debug("Took %.2f seconds to select hosts for %d instances", clock.monotonic() - asked_at, len(wanted))
    for uuid, (first, *others) in zip(wanted, answer.selections, strict=True):
        LOG.debug("[instance: %s] Selected host: %s; Selected node: %s; Alternates: %s", uuid, first.host, first.node,
                  [(row.host, row.node) for row in others])  # fmt: skip
    chosen = [msgspec.to_builtins(list(row)) for row in answer.selections]
    return Done({"selections": dict(zip(wanted, chosen, strict=True))})


def _release(world: World, uuids: Iterable[str]) -> None:
    for uuid in uuids:
        world.placement.delete_allocations(uuid)


def _with_hosts(world: World, group: GroupSpec) -> GroupSpec:
    hosts: set[str] = set()
    for cell in world.cells:
        members = servers.several(cell.database, group.members)
        hosts |= {server.host for server in members if server.host and not server.deleted}
    return msgspec.structs.replace(group, hosts=tuple(sorted(hosts)))


def hand_over(world: World, run: Run) -> Done:
    """Every server to its cell, or to cell0, or nowhere when the user has cancelled it."""
    selections: dict[str, Any] = run.outputs["schedule"]["selections"]
    fault = run.outputs["schedule"].get("fault")
    pending = requests.several(world.cells.api, run.params["servers"])
    specs = requests.specs(world.cells.api, list(pending))
    by_cell: dict[str, list[requests.BuildRequest]] = {}
    for uuid, request in pending.items():
        if uuid in specs and (uuid in selections or fault is not None):  # else deleted in this moment
            by_cell.setdefault(_cell_of(selections.get(uuid)), []).append(request)
    for cell, waiting in by_cell.items():
        _into_cell(world, run, cell, waiting, selections, specs, fault)
    won = _settle(world, run, selections)
    _take_back_lost(world, run, selections, won)
    _release(world, set(selections) - won)
    _let_go(world, run, {uuid: _cell_of(selections[uuid]) for uuid in selections if uuid in won})
    return Done({})


def _cell_of(selections: list[dict[str, Any]] | None) -> str:
    return selections[0]["cell_uuid"] if selections else CELL0


def build_id(run_id: str, server: str) -> str:
    """The id of a server's `build`, the same at every try."""
    return ids.derived_uuid(run_id, server)


def _into_cell(
    world: World, run: Run, cell: str, waiting: list[requests.BuildRequest], selections: dict[str, Any],
    specs: dict[str, RequestSpec], fault: dict[str, Any] | None,
) -> None:  # fmt: skip
    database, tables = world.database(cell)
    zones = {
        request.server.uuid: zone_of_host(world, selections[request.server.uuid][0]["host"])
        for request in waiting if request.server.uuid in selections
    }  # fmt: skip
    def put(connection: Connection) -> None:
        for request in waiting:
            uuid = request.server.uuid
            if servers.read(connection, uuid, deleted=True) is not None:
                continue
            if uuid not in selections:
                _bury(connection, run.ctx, request, fault or {})
                continue
            first = selections[uuid][0]
            server = msgspec.structs.replace(
                request.server, host=first["host"], node=first["node"], launched_on=first["host"],
                compute_id=first["provider_uuid"], availability_zone=zones[uuid], created_at=request.server.created_at,
            )  # fmt: skip
            servers.insert(connection, server, request.extra, request.tags)
            block_devices.insert(connection, uuid, request.devices)
            actions.start(connection, uuid, "create", run.ctx)
            params = {
                "selections": selections[uuid],
                "interfaces": list(specs[uuid].requested_networks),
                "groups": list(specs[uuid].security_groups),
                "password": run.params.get("password"),
                "host": first["host"],
            }
            profile = profile_of(specs[uuid].flavor.extra_specs)
            if profile is not None:
                params |= {"device_profile": profile, "project_id": server.project_id}
            row = journal.NewWorkflow(
                id=build_id(run.id, uuid), name="build" if profile is None else "build_with_accelerators",
                subject=uuid, params=params, context=run.ctx.to_message(),
            )  # fmt: skip
            journal.insert(connection, tables, row, held=True)

    try:
        with database.write() as connection:
            put(connection)
    except Exception as error:
        if not servers.taken(error):
            raise
        # A conductor that had stalled put the same servers there in this moment: put those that are left.
        with database.write() as connection:
            put(connection)


def _bury(connection: Connection, ctx: Context, request: requests.BuildRequest, fault: dict[str, Any]) -> None:
    """A server that has no host: a row in cell0, ERROR, with a fault and a failed action."""
    server = msgspec.structs.replace(request.server, vm_state=states.ERROR, task_state=None)
    servers.insert(connection, server, request.extra, request.tags)
    block_devices.insert(connection, server.uuid, request.devices)
    actions.start(connection, server.uuid, "create", ctx)
    event = "conductor_schedule_and_build_instances"
    actions.open_event(connection, server.uuid, "create", ctx.request_id, event, None)
    text, details = str(fault.get("text", "")), str(fault.get("details", ""))
    action = actions.close_events(
        connection, server.uuid, "create", ctx.request_id, traceback="\n".join(filter(None, (text, details))),
        details=text[:255],
    )
    if action is not None:
        actions.close(connection, action, failed=True)
    servers.add_fault(connection, server.uuid, int(fault.get("code", 500)), text, details, None)


def _settle(world: World, run: Run, selections: dict[str, Any]) -> set[str]:
    """Say in the API database where each server is. Answers those that are really there now."""
    uuids: list[str] = run.params["servers"]
    won: set[str] = set()
    with world.cells.api.write() as connection:
        known = requests.mappings(connection, uuids)
        for uuid in uuids:
            mapping = known.get(uuid)
            if mapping is None:
                continue
            cell = _cell_of(selections.get(uuid))
            if mapping.cell_uuid is not None:
                if mapping.cell_uuid == cell:  # an earlier try came this far; else another conductor decided otherwise
                    won.add(uuid)
            elif requests.drop_request(connection, uuid):
                requests.set_cell(connection, uuid, cell)
                won.add(uuid)
    return won


def _take_back_lost(world: World, run: Run, selections: dict[str, Any], won: set[str]) -> None:
    """The servers that their user has cancelled: whoever looks for one finds nothing."""
    for uuid in run.params["servers"]:
        if uuid not in won:
            _take_back(world, run, _cell_of(selections.get(uuid)), uuid)


def _take_back(world: World, run: Run, cell: str, uuid: str) -> None:
    database, tables = world.database(cell)
    with database.write() as connection:
        journal.discard(connection, tables, build_id(run.id, uuid))
        if not servers.mark_deleted(connection, uuid, clock.utcnow()):
            return
        block_devices.delete_of(connection, uuid)
        text = "The server was not handed over to this cell."
        action = actions.close_events(
            connection, uuid, "create", run.ctx.request_id, traceback=text, details=text
        )
        if action is not None:
            actions.close(connection, action, failed=True)


def _let_go(world: World, run: Run, cells: dict[str, str]) -> None:
    for cell in sorted(set(cells.values())):
        database, tables = world.database(cell)
        held = [build_id(run.id, uuid) for uuid in cells if cells[uuid] == cell]
        with database.write() as connection:
            released = [workflow for workflow in held if journal.release(connection, tables, workflow)]
        for workflow in released:
            wake(world, cell, workflow, run.ctx)


def bury_all(world: World, run: Run, failure: Any) -> None:
    """The scheduler could not be asked, or the hand-over went wrong: every server still waiting goes to cell0 with
    what happened, and its claim is given back; those that reached their cell before go on there.
    """
    fault = {"code": 500, "text": failure.text}
    uuids: list[str] = run.params["servers"]
    LOG.error("Failed to schedule instances %s: %s", ", ".join(uuids), failure.text)
    pending = requests.several(world.cells.api, uuids)
    selections = run.outputs.get("schedule", {}).get("selections", {})
    if pending:
        _into_cell(world, run, CELL0, list(pending.values()), {}, {}, fault)
    buried = _settle(world, run, {})  # from here on it is certain who is where, whatever a rival does
    _take_back_lost(world, run, {}, buried)
    for uuid in buried & set(selections):
        _take_back(world, run, _cell_of(selections[uuid]), uuid)
    with world.cells.api.read() as connection:
        known = requests.mappings(connection, uuids)
    alive = {uuid: mapping.cell_uuid for uuid, mapping in known.items() if mapping.cell_uuid not in (None, CELL0)}
    _let_go(world, run, {uuid: cell for uuid, cell in alive.items() if cell})
    _release(world, [uuid for uuid in uuids if uuid not in alive])


BOOT = Workflow(
    "boot",
    (
        Step("schedule", schedule, NOTHING, tries=8),  # a minute and a half without any scheduler
        Step("hand_over", hand_over, NOTHING, tries=5),
    ),
    on_failed=bury_all,
)

