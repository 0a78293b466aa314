"""Workflow `delete`, in the server's cell: stop what else is being done to the server, then take it apart.

Order (workflow-facts.md 6.3): guest, ports, volumes, accelerators, allocation, rows. Nothing is undone: a failure
leaves the server in ERROR with a fault, and it can be deleted again. A host whose agent is down is passed over: its
agent removes the guest when it comes back (reconciler of guests that the control plane does not know).
"""

from __future__ import annotations

from kilonova.bus.calls import Destroy, guest_destroy
from kilonova.compute.accelerators import profile_of
from kilonova.compute.world import World
from kilonova.core import clock, states
from kilonova.core.context import Context
from kilonova.core.server import Server
from kilonova.db.queries import block_devices, requests, servers
from kilonova.sql.engine import Connection
from kilonova.workflows import accelerators, disks, guests, ports
from kilonova.workflows.preempt import others_end
from kilonova.workflows.step import NOTHING, Done, Failure, Outcome, Run, Step, Workflow, Write
from kilonova.workflows.verbs import verb

_OTHERS = ("build", "build_with_accelerators", "power", "attach_volume", "detach_volume")


def _host(run: Run) -> str | None:
    found: str | None = run.notes.get("host")
    return found


_destroy = guests.while_up(
    verb(guest_destroy, build=lambda world, run, ticket: Destroy(ticket), host=_host), _host, guests.left
)


def _row(world: World, run: Run) -> Server | None:
    return servers.get(world.cells.database(run.database), run.subject)


def destroy(world: World, run: Run) -> Outcome:
    """Have the agent remove the guest; without a host, or when its agent is down, there is nothing to ask."""
    if "host" not in run.notes:
        server = _row(world, run)
        host = server.host if server is not None else None
        if host is None:
            return Done()
        agent = world.agent_of(host)
        if agent is None or not (agent.up or run.epoch > 1):  # after a restart it may just not have beaten yet
            return Done({"left_on": host})
        run.note("host", host)
    return _destroy(world, run)


def release(world: World, run: Run) -> Done:
    """Give back ports, volumes, accelerators and the allocation."""
    server = _row(world, run)
    vifs = server.network_info if server is not None else []
    spec = requests.specs(world.cells.api, [run.subject]).get(run.subject)
    wanted = spec.requested_networks if spec is not None else ()
    if vifs or wanted:  # a build that could not be undone may have left ports that the row does not know
        own = [vif["id"] for vif in vifs if not vif["ours"]]
        ports.release(world, run.subject, own + [entry["port"] for entry in wanted if entry["port"]])
    if server is not None:
        devices = block_devices.of(world.cells.database(run.database), run.subject)
        owner = Context(user_id=server.user_id, project_id=server.project_id, overwrite=False)
        disks.release(world, owner, run.subject, devices)
        if profile_of(server.flavor.get("extra_specs") or {}) is not None:
            accelerators.drop(world, run.subject)
    world.placement.delete_allocations(run.subject)
    return Done()


def forgotten(world: World, run: Run) -> Write:
    """The server is gone; its row stays for those who ask for deleted servers."""
    with world.cells.api.write() as connection:
        requests.queue_delete(connection, run.subject)

    def write(connection: Connection) -> None:
        block_devices.delete_of(connection, run.subject)
        servers.mark_deleted(connection, run.subject, clock.utcnow())

    return write


def failed(world: World, run: Run, failure: Failure) -> Write:
    """It could not be taken apart: ERROR with a fault; it counts again, and may be deleted again."""
    with world.cells.api.write() as connection:
        requests.queue_delete(connection, run.subject, queued=False)

    def write(connection: Connection) -> None:
        servers.change(connection, run.subject, {"vm_state": states.ERROR, "task_state": None})

    return write


DELETE = Workflow(
    "delete",
    (
        Step("settle", others_end(cancel=_OTHERS), NOTHING, event="compute_terminate_instance"),
        Step("destroy", destroy, NOTHING, tries=3),
        Step("release", release, NOTHING, tries=10),
    ),
    last_return="settle",
    action="delete",
    on_done=forgotten,
    on_error=failed,
    on_failed=failed,
)
