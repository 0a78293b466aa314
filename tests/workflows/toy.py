"""A toy cloud for the engine's tests: allocations, ports, guests on an agent; one workflow with alternates and undo."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kilonova.bus import calls
from kilonova.bus.local import LocalBus
from kilonova.core.context import Context, preserved
from kilonova.core.errors import NotFound, Unavailable
from kilonova.db import cell_schema
from kilonova.db.queries import journal as sql
from kilonova.sql.engine import Database
from kilonova.workflows.engine import Engine
from kilonova.workflows.step import (
    NOTHING,
    AgentAddress,
    Alternates,
    Done,
    Failure,
    Outcome,
    Parked,
    Run,
    Step,
    Workflow,
)
from kilonova.workflows.verbs import verb
from tests.workflows.harness import Faults, FaultyDatabase, ManualPool, Stage

CELL = "cell1"
SERVER = "11111111-0000-4000-8000-000000000001"


@dataclass
class Outside:
    """Services that survive every crash of ours. Each has a key by which its callers find their things again."""

    faults: Faults
    allocations: dict[str, str] = field(default_factory=dict)  # server: host
    ports: dict[str, tuple[str, str]] = field(default_factory=dict)  # port id: (device, host)
    guests: dict[str, str] = field(default_factory=dict)  # server: host
    created: list[str] = field(default_factory=list)
    plugged: set[str] = field(default_factory=set)  # ports whose event was sent
    bad_hosts: set[str] = field(default_factory=set)
    unavailable: int = 0

    def allocate(self, server: str, host: str) -> None:
        self.allocations[server] = host
        self.faults.effect("allocate")

    def deallocate(self, server: str) -> None:
        self.allocations.pop(server, None)
        self.faults.effect("deallocate")

    def create_port(self, device: str, host: str) -> str:
        if self.unavailable:
            self.unavailable -= 1
            raise Unavailable("network is away")
        port = f"port-{len(self.created)}"
        self.created.append(port)
        self.ports[port] = (device, host)
        self.faults.effect("create port")
        return port

    def delete_port(self, port: str) -> None:
        if port not in self.ports:
            raise NotFound(f"no port {port}")
        del self.ports[port]
        self.faults.effect("delete port")


class Agent:
    """An agent process: refuses old epochs, answers a repeated id from what it did; its memory survives restarts."""

    def __init__(self, outside: Outside, bus: LocalBus, *, deaf: int = 0) -> None:
        self.outside, self.bus, self.deaf = outside, bus, deaf
        self.epoch, self.epochs = 1, {}  # type: ignore[var-annotated]
        self.answers: dict[str, tuple[bool, str]] = {}
        self.received: list[str] = []
        self.violations: list[str] = []
        bus.serve("agent", {"guest_spawn": self._handle, "guest_destroy": self._handle}, address="agent-1")

    def _handle(self, _ctx: Context, request: Any) -> None:
        ticket = request.ticket
        self.received.append(ticket.id)
        if self.deaf:
            self.deaf -= 1
            return
        if ticket.epoch < self.epochs.get(ticket.server, 0):
            return
        self.epochs[ticket.server] = ticket.epoch
        if ticket.id not in self.answers:
            self.answers[ticket.id] = self._carry_out(request)
        ok, error = self.answers[ticket.id]
        self.bus.cast(calls.verb_report, calls.VerbReport(ticket, ok, {"host": ticket.host}, error, error))

    def _carry_out(self, request: Any) -> tuple[bool, str]:
        ticket = request.ticket
        if isinstance(request, calls.Destroy):
            if self.outside.guests.get(ticket.server) == ticket.host:
                del self.outside.guests[ticket.server]
            self.outside.faults.effect("destroy")
            return True, ""
        if self.outside.guests.get(ticket.server) not in (None, ticket.host):
            self.violations.append(f"two guests of {ticket.server}")
        self.outside.guests[ticket.server] = ticket.host  # a failed spawn leaves something behind as well
        self.outside.faults.effect("spawn")
        return (False, "no_disk") if ticket.host in self.outside.bad_hosts else (True, "")


@dataclass
class World:
    databases_: dict[str, tuple[Any, sql.JournalTables]]
    bus: LocalBus
    outside: Outside
    agent: Agent

    def databases(self) -> Sequence[str]:
        return tuple(self.databases_)

    def database(self, name: str) -> tuple[Any, sql.JournalTables]:
        return self.databases_[name]

    def agent_of(self, host: str) -> AgentAddress | None:
        return AgentAddress("agent-1", self.agent.epoch, True) if host.startswith("host-") else None


# -- the workflow ----------------------------------------------------------------------------------------------------


def _host(run: Run) -> str:
    return str(run.params["hosts"][run.attempt - 1])


def schedule(world: World, run: Run) -> Outcome:
    return Done({"hosts": run.params["hosts"]})


def claim(world: World, run: Run) -> Outcome:
    world.outside.allocate(run.subject, _host(run))
    return Done()


def unclaim(world: World, run: Run) -> Outcome:
    world.outside.deallocate(run.subject)
    return None


def network(world: World, run: Run) -> Outcome:
    device = f"{run.subject}/0"
    if "device" not in run.notes:
        run.note("device", device)
    found = [port for port, (owner, _) in world.outside.ports.items() if owner == device]
    port = found[0] if found else world.outside.create_port(device, _host(run))
    return Done({"port": port})


def unnetwork(world: World, run: Run) -> Outcome:
    device = run.notes.get("device")
    for port in [port for port, (owner, _) in world.outside.ports.items() if owner == device]:
        world.outside.delete_port(port)
    return Done()


def plugged(world: World, run: Run) -> Outcome:
    port = run.outputs["network"]["port"]
    if run.event("network-vif-plugged", port):
        return Done()
    if run.expired or run.elapsed > 300:
        raise TimeoutError("not plugged")
    return Parked((("network-vif-plugged", port),), 300)


def next_host(world: World, run: Run) -> bool:
    return run.attempt < len(run.params["hosts"])


def guest_of(world: World, run: Run, ticket: calls.Ticket) -> calls.Spawn:
    return calls.Spawn(ticket, calls.GuestSpec(run.subject, "toy", "toy", "p", "u", 1, 64, 1))


spawn = verb(calls.guest_spawn, build=guest_of, host=_host, seconds=600)
destroy = verb(calls.guest_destroy, build=lambda world, run, ticket: calls.Destroy(ticket), host=_host, seconds=600)


def toy(on_done: Any = None, on_failed: Any = None) -> Workflow:
    return Workflow(
        "toy",
        steps=(
            Step("schedule", schedule, undo=NOTHING, task_state="scheduling"),
            Alternates(
                (
                    Step("claim", claim, undo=unclaim),
                    Step("network", network, undo=unnetwork, task_state="networking", event="toy_network", tries=3),
                    Step("spawn", spawn, undo=destroy, task_state="spawning"),
                    Step("plugged", plugged, undo=NOTHING),
                ),
                next_candidate=next_host,
            ),
        ),
        action="create",
        on_done=on_done,
        on_failed=on_failed,
    )


# -- a stage ---------------------------------------------------------------------------------------------------------


def open_cell(folder: Path, faults: Faults) -> FaultyDatabase:
    database = Database(f"sqlite:///{folder}/cell.db", pool_size=2)
    with database.write() as connection:
        for table in sql.CELL:
            table.create(connection)
    assert set(sql.CELL) <= set(cell_schema.metadata.tables.values())
    return FaultyDatabase(database, faults)


def make_world(place: Path | Database, faults: Faults, *, deaf: int = 0) -> tuple[World, ManualPool]:
    """place: an empty cell database, or a folder for one."""
    pool = ManualPool()
    bus = LocalBus(pool)
    outside = Outside(faults)
    agent = Agent(outside, bus, deaf=deaf)
    cell = FaultyDatabase(place, faults) if isinstance(place, Database) else open_cell(place, faults)
    return World({CELL: (cell, sql.CELL)}, bus, outside, agent), pool


def begin(world: World, hosts: Sequence[str], *, id_: str = "w1", name: str = "toy", subject: str = SERVER) -> None:
    database, tables = world.database(CELL)
    with preserved():
        context = Context(user_id="u", project_id="p").to_message()
    with database.write() as connection:
        sql.insert(connection, tables, sql.NewWorkflow(id_, name, subject, {"hosts": list(hosts)}, context))


def plug(world: World) -> Callable[[Engine], bool]:
    """The network service: says once for each port that it is plugged, when the guest is there."""

    def pump(engine: Engine) -> bool:
        for port, (device, _host) in world.outside.ports.items():
            if port not in world.outside.plugged and device.split("/")[0] in world.outside.guests:
                engine.deliver([calls.Event(CELL, device.split("/")[0], "network-vif-plugged", port)])
                world.outside.plugged.add(port)  # sent again until it is kept: it is acknowledged
                return True
        return False

    return pump


def rows(world: World) -> dict[str, str]:
    database, tables = world.database(CELL)
    with database.read() as connection:
        return {row.id: row.state for row in connection.execute(tables.workflows.select())}


def kept_events(world: World) -> int:
    database, tables = world.database(CELL)
    with database.read() as connection:
        return len(connection.execute(tables.events.select()).all())


def check_end(
    world: World, *, ends: Sequence[str] = ("done", "undone"), subjects: Mapping[str, str] | None = None
) -> None:
    """Stable, and nothing left over. subjects: which server each workflow is about."""
    outside, states = world.outside, rows(world)
    done: dict[str, str] = {}
    for id_, subject in (subjects or {"w1": SERVER}).items():
        assert states[id_] in ends, states
        if states[id_] == "done":
            done[subject] = outside.allocations[subject]
    assert outside.allocations == done
    assert outside.guests == done
    assert sorted((device.split("/")[0], host) for device, host in outside.ports.values()) == sorted(done.items())
    assert kept_events(world) == 0


def toy_stage(
    hosts: Sequence[str] = ("host-1",), *, bad: Sequence[str] = (), ends: Sequence[str] = ("done", "undone"),
    deaf: int = 0, written: list[Failure] | None = None, empty: Callable[[], Database] | None = None,
) -> Callable[[Faults, Path], Stage]:  # fmt: skip
    """A stage factory: one server on the first host that is good. empty: makes an empty cell database."""

    def make(faults: Faults, folder: Path) -> Stage:
        world, pool = make_world(folder if empty is None else empty(), faults, deaf=deaf)
        world.outside.bad_hosts |= set(bad)

        def failed(_world: Any, _run: Run, failure: Failure) -> None:
            if written is not None:
                written.append(failure)

        return Stage(
            world, [toy(on_failed=failed)], lambda: begin(world, hosts), lambda: check_end(world, ends=ends), pool,
            world.bus, plug(world),
        )  # fmt: skip

    return make
