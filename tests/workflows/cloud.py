"""A whole cloud to be killed in: the real parts in one thread, on SQLite files copied from a template made once.

Placement, network, volumes and images are the embedded services behind their real clients; agent, simulated driver,
scheduler, conductor and use cases are those of the all-in-one. Time jumps, casts run when told, and a kill takes away
what the process had in memory. What was done outside counts as an effect of `Faults`, to be killed at.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from kilonova.agent.service import Agent
from kilonova.agent.settings import AgentSettings
from kilonova.bus.calls import GuestSpec
from kilonova.bus.local import LocalBus
from kilonova.cells.cells import Cells
from kilonova.clients.accelerators import HttpAccelerators
from kilonova.clients.identity import HttpIdentity
from kilonova.clients.images import HttpImages
from kilonova.clients.network import HttpNetwork
from kilonova.clients.placement import HttpPlacement
from kilonova.clients.rest import FixedToken, NoAnswer, RestClient
from kilonova.clients.volumes import HttpVolumes
from kilonova.compute import external_events
from kilonova.compute.bootstrap import bootstrap_cells, bootstrap_flavors
from kilonova.compute.settings import ComputeSettings
from kilonova.compute.world import World
from kilonova.conductor.reconcilers.network_cache import NetworkCache
from kilonova.conductor.reports import AgentReports, NewHosts
from kilonova.conductor.rounds import Rounds
from kilonova.conductor.service import Conductor
from kilonova.core import clock, ids
from kilonova.core.context import Context, preserved, service_context
from kilonova.db import api_schema, cell_schema
from kilonova.db.queries.hosts import AgentDirectory
from kilonova.embedded.images import app as images
from kilonova.embedded.images.bootstrap import bootstrap as bootstrap_images
from kilonova.embedded.network import app as network
from kilonova.embedded.network import events as network_events
from kilonova.embedded.network.ports import event, serves_server
from kilonova.embedded.network.topology import bootstrap as bootstrap_network
from kilonova.embedded.volumes import app as volumes
from kilonova.http.transport import WsgiTransport
from kilonova.placement import app as placement
from kilonova.placement.store.prepare import prepare as prepare_placement
from kilonova.scheduler.service import Scheduler
from kilonova.scheduler.settings import SchedulerSettings
from kilonova.sql.engine import Database
from kilonova.sql.migrate import prepare
from kilonova.virt.driver import GuestAborted, GuestFailed, GuestState
from kilonova.virt.simulated import SimulatedDriver
from kilonova.workflows.catalogue import WORKFLOWS, recorder
from kilonova.workflows.step import Workflow
from tests.workflows.cyborg import Cyborg
from tests.workflows.harness import (
    Change,
    Faults,
    FaultyDatabase,
    JumpingClock,
    ManualPool,
    ManualTimers,
    _changed,
    expire_leases,
    live_rows,
)

PROJECT, USER, SERVICE = "d" * 32, "u" * 32, "5" * 32
HOSTS = 4
DATABASES = ("api", "cell0", "cell1", "network", "volumes", "images", "placement")
QUOTAS = {**ComputeSettings().quotas, "instances": -1, "cores": -1, "ram": -1}


class TickingClock(JumpingClock):
    """Jumps like its parent, and no two looks at it are equal. It begins when the template was made."""

    def __init__(self) -> None:
        super().__init__()
        self._start = datetime.now(UTC).replace(tzinfo=None)

    def utcnow(self) -> Any:
        self.seconds += 1e-6
        return super().utcnow()


class Effects:
    """A way to a service that notes what succeeded there; a service in `away` does not answer."""

    def __init__(self, app: Any, name: str, cloud: Cloud) -> None:
        self._inner, self._name, self._cloud = WsgiTransport(app), name, cloud

    def send(self, method: str, url: str, headers: Any, body: Any) -> Any:
        if self._name in self._cloud.away:
            raise NoAnswer(f"{self._name} is away")
        refusal = self._cloud.refuse.get((self._name, method))
        if refusal is not None and refusal[0] in url:
            return refusal[1], {"content-type": "application/json"}, refusal[2]
        answer = self._inner.send(method, url, headers, body)
        self._cloud.calls.append(f"{self._name} {method} {url.split('?')[0]}")
        if method != "GET" and answer[0] < 300:
            self._cloud.faults.effect(f"{self._name} {method}")
        return answer

    def open(self, method: str, url: str, headers: Any, body: Any) -> Any:
        return self._inner.open(method, url, headers, body)


class SlowNetwork(HttpNetwork):
    """The network service of a slow backend: what it answers is DOWN until the port was plugged."""

    plugged: set[str]

    def _seen(self, port: dict[str, Any]) -> dict[str, Any]:
        return port if port["id"] in self.plugged else port | {"status": "DOWN"}

    def list_ports(self, **filters: Any) -> list[dict[str, Any]]:
        return [self._seen(port) for port in super().list_ports(**filters)]

    def create_port(self, body: dict[str, Any]) -> dict[str, Any]:
        return self._seen(super().create_port(body))

    def create_ports(self, bodies: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [self._seen(port) for port in super().create_ports(bodies)]

    def update_port(self, port: str, body: dict[str, Any]) -> dict[str, Any]:
        return self._seen(super().update_port(port, body))


class TroubledDriver(SimulatedDriver):
    """Hypervisors of which some fail; what they did is an effect."""

    cloud: Cloud

    def spawn(self, host: str, guest: GuestSpec, *, paused: bool) -> GuestState:
        self.cloud.spawns.append((guest.uuid, host))
        if host in self.cloud.bad_hosts or guest.name in self.cloud.bad_names:
            raise GuestFailed(host=host, reason="no luck")
        if host in self.cloud.fatal_hosts:
            raise GuestAborted(host=host, reason="no hope")
        made = super().spawn(host, guest, paused=paused)
        self.cloud.faults.effect("spawn")
        return made

    def destroy(self, host: str, server: str) -> None:
        super().destroy(host, server)
        self.cloud.faults.effect("destroy")


@dataclass
class Process:
    """What one process has in memory."""

    pool: ManualPool
    bus: LocalBus
    world: World
    directory: AgentDirectory
    scheduler: Scheduler
    agent: Agent | None = None
    conductor: Conductor | None = None
    timers: ManualTimers | None = None


def behind(app: Any, script: str) -> Any:
    """The application as its pipeline would call it, for the service's own account."""

    def call(environ: dict[str, Any], start_response: Any) -> Any:
        environ["SCRIPT_NAME"] = script
        environ["kilonova.context"] = Context(
            request_id=ids.new_request_id(), overwrite=False, roles=["admin", "service"], is_admin=True,
            project_id=SERVICE, user_id=SERVICE,
        )  # fmt: skip
        return app(environ, start_response)

    return call


@dataclass
class Cloud:
    """Files that survive, services that are not killed, and the present process."""

    folder: Path
    settings: ComputeSettings = field(default_factory=lambda: ComputeSettings(quotas=QUOTAS))
    slow_plug: bool = False
    max_attempts: int = 3
    faults: Faults = field(default_factory=Faults)
    change: Change | None = None
    away: set[str] = field(default_factory=set)
    refuse: dict[tuple[str, str], tuple[str, int, bytes]] = field(default_factory=dict)
    bad_hosts: set[str] = field(default_factory=set)
    fatal_hosts: set[str] = field(default_factory=set)
    bad_names: set[str] = field(default_factory=set)
    calls: list[str] = field(default_factory=list)
    spawns: list[tuple[str, str]] = field(default_factory=list)
    own_volumes: frozenset[str] = frozenset()
    hold_events: bool = False
    number: int = 0

    def __post_init__(self) -> None:
        self.clock = TickingClock()
        self._clock_before = clock.install(self.clock)
        self.context = Context(user_id=USER, project_id=PROJECT, roles=["member"], overwrite=False)
        self.files = {name: Database(f"sqlite:///{self.folder}/{name}.db", pool_size=2) for name in DATABASES}
        self._open_services()
        bootstrap_cells(self.files["api"], "cell0", "cell1", "local:///")
        self.process = self._process()
        self.start_agent()
        self.start_conductor()
        self.settle()

    def close(self) -> None:
        """Let go of files; the folder may be removed."""
        self.stop_agent()
        for database in self.files.values():
            database.dispose()
        clock.install(self._clock_before)

    # -- parts ---------------------------------------------------------------------------------------------------------

    def _open_services(self) -> None:
        # events are taken from the outbox by `pump`, so its notifier is never called
        self.net = network.make_app(self.files["network"], notifier=None)  # type: ignore[arg-type]
        self.images = HttpImages(self._rest("images", images.make_app(self._pictures()), "/"))
        disks = volumes.make_app(self.files["volumes"], images=lambda _ctx, image: self.images.show(image))
        self.network: HttpNetwork = HttpNetwork(self._rest("network", self.net, ""))
        if self.slow_plug:
            self.network = SlowNetwork(self._rest("network", self.net, ""))
            self.network.plugged = set()
        self.volumes = HttpVolumes(self._rest("volume", disks, "/v3"))
        self.placement = HttpPlacement(self._rest("placement", placement.make_app(self.files["placement"]), ""))

        self.cyborg = Cyborg()
        self.accelerators = HttpAccelerators(self._rest("accelerator", self.cyborg, ""))

    def _pictures(self) -> Any:
        return images.make_world(self.files["images"], self.folder / "pictures")

    def _rest(self, name: str, app: Any, path: str) -> RestClient:
        way = Effects(behind(app, ""), name, self)
        return RestClient(name, f"http://{name}{path.rstrip('/')}", way, FixedToken("token", None))

    def _process(self) -> Process:
        pool = ManualPool()
        bus = LocalBus(pool)
        cells = Cells(self._faulty("api"), self._faulty)  # type: ignore[arg-type]
        directory = AgentDirectory(lambda: [cell.database for cell in cells], 60)
        world = World(
            cells=cells, bus=bus, settings=self.settings, images=self.images, network=self.network,
            volumes=self.volumes, placement=self.placement, identity=HttpIdentity(None),  # type: ignore[arg-type]
            accelerators=self.accelerators, agent_of=directory.agent_of,
        )  # fmt: skip
        scheduler = Scheduler(cells, self.placement, SchedulerSettings(max_attempts=self.max_attempts))
        bus.serve("scheduler", {
            "select_destinations": scheduler.select_destinations, "hosts_changed": scheduler.hosts_changed,
        })  # fmt: skip
        (self.cell1,) = (cell.uuid for cell in cells)
        return Process(pool, bus, world, directory, scheduler)

    def _faulty(self, name: str) -> FaultyDatabase:
        return _Counted(self.files[name], self)

    def start_agent(self) -> None:
        """The agent process begins: it takes verbs and beats."""
        driver = TroubledDriver(str(self.folder / "guests.db"), hosts=HOSTS)
        driver.cloud = self
        self.driver = driver
        settings = AgentSettings(periodic_enable=False)
        agent = Agent("agent-1", self.process.bus, driver, self.placement, settings, self.folder)
        agent._stop_serving = self.process.bus.serve("agent", agent.handlers(), address="agent-1")
        self.process.agent = agent

    def stop_agent(self) -> None:
        """The agent process dies; guests stay."""
        agent, self.process.agent = self.process.agent, None
        if agent is not None:
            agent._retire()
            agent._state.close()
            self.driver.close()

    def start_conductor(self, *, me: str = "conductor-0") -> None:
        """A conductor begins, with nothing in memory."""
        p = self.process
        workflows: Sequence[Workflow] = [_changed(one, self.change) if self.change else one for one in WORKFLOWS]
        p.timers = ManualTimers(self.clock)
        p.conductor = Conductor(
            p.world, workflows, recorder(), me=me, pool=p.pool, timers=p.timers, told=NetworkCache(p.world).told
        )
        self.rounds = Rounds(p.world)
        reports = AgentReports(
            p.world.cells.database(self.cell1), p.world.cells.api, self.cell1, p.bus, NewHosts(),
            p.conductor.agent_seen, p.directory,
        )  # fmt: skip
        p.conductor._stop_serving = p.bus.serve(
            "conductor", {**p.conductor.handlers(), **reports.handlers()}, address=me
        )
        self.recovered = False

    # -- death ---------------------------------------------------------------------------------------------------------

    def kill(self, *, whole: bool) -> None:
        """Kill the whole process; or only the conductor, and another one takes over after its lease."""
        agent_in_it = self.process.agent is not None
        if whole:
            self.stop_agent()
            self.net.outbox._waiting.clear()
            self.process = self._process()
            self._tell_plugged_again()
            if agent_in_it:
                self.start_agent()
            self.start_conductor(me=f"conductor-{self.number}")
            return
        conductor = self.process.conductor
        assert conductor is not None
        assert conductor._stop_serving is not None
        conductor._stop_serving()
        self.process.pool.tasks.clear()
        for name in self.process.world.databases():
            expire_leases(*self.process.world.database(name))
        if agent_in_it and self.process.agent is not None and self.process.agent._dispatch.in_hand():
            self.stop_agent()  # it was killed in the middle of a verb
            self.start_agent()
        self.number += 1
        self.start_conductor(me=f"conductor-{self.number}")

    def _tell_plugged_again(self) -> None:
        """As the network service does when it starts (embedded.network.events)."""
        with self.files["network"].read() as c:
            rows = c.execute(network_events._PLUGGED, {"since": clock.after(-network_events._RECENT)}).mappings()
            found = [dict(row) for row in rows]
        self.net.outbox.put([event("network-vif-plugged", port) for port in found if serves_server(port)])

    # -- life ----------------------------------------------------------------------------------------------------------

    def run(self, *, whole: bool = True, until: Callable[[], bool] | None = None, most: int = 4000) -> None:
        """To the end (or until something is so), through the kill that `faults` holds."""
        from tests.workflows.harness import Crash

        for _ in range(most):
            try:
                if until is not None and until():
                    return
                if self.step():
                    return
            except Crash:
                self.kill(whole=whole)
        raise AssertionError(f"no end: {live_rows(self.process.world)}")

    def step(self) -> bool:
        """One round; whether everything is over."""
        p = self.process
        assert p.conductor is not None
        assert p.timers is not None
        with preserved():
            service_context()
            if not self.recovered:
                p.conductor.engine.recover()
                self.recovered = True
            self.beat()
            if p.pool.run() or p.conductor.engine.poll() or self.pump():
                return False
            if not p.conductor.engine.live and not live_rows(p.world):
                return True
            assert p.timers.jump(), f"stuck with {live_rows(p.world)}"
            p.conductor.engine.renew()
        return False

    def settle(self) -> None:
        """Run what is under way; nothing may be left to do."""
        self.run()

    def work(self) -> None:
        """Run what can run now; time does not move."""
        p = self.process
        assert p.conductor is not None
        with preserved():
            service_context()
            if not self.recovered:
                p.conductor.engine.recover()
                self.recovered = True
            self.beat()
            while p.pool.run() or p.conductor.engine.poll() or self.pump():
                pass

    def beat(self) -> None:
        """What the agent does by the clock."""
        if self.process.agent is not None:
            self.process.agent._timetable.run_due()

    def pump(self) -> bool:
        """The network and accelerator services tell compute, unless they are made to hold their tongues."""
        waiting = self.net.outbox._waiting
        if self.hold_events or not (waiting or self.cyborg.binding):
            return False
        batch = [waiting.popleft() for _ in range(len(waiting))]
        batch += self.cyborg.resolve()
        if isinstance(self.network, SlowNetwork):
            self.network.plugged |= {one["tag"] for one in batch if one["name"] == "network-vif-plugged"}
        told = [(one["name"], one["server_uuid"], one["status"], one["tag"]) for one in batch]
        external_events.tell(self.process.world, self.context, told)
        return True

    # -- for tests -----------------------------------------------------------------------------------------------------

    @property
    def world(self) -> World:
        return self.process.world

    def databases(self) -> Iterable[tuple[Any, Any]]:
        return [self.process.world.database(name) for name in self.process.world.databases()]


class _Counted(FaultyDatabase):
    """Asks the cloud for its faults at each write, since a test may arm others."""

    def __init__(self, database: Database, cloud: Cloud) -> None:
        super().__init__(database, cloud.faults)
        self._cloud = cloud

    def write(self) -> Any:
        self._faults = self._cloud.faults
        return super().write()

    def dispose(self) -> None:
        self._database.dispose()


def quick_folder() -> Path:
    """A new folder, in memory where the machine has such: these files are closed, and so synced, very often."""
    memory = Path("/dev/shm")
    folder = Path(tempfile.mkdtemp(prefix="kilonova-test-", dir=memory if memory.is_dir() else None))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@cache
def template() -> Path:
    """A folder with the databases of a cloud whose hosts are known everywhere; made once a process."""
    folder = quick_folder() / "template"
    folder.mkdir()
    files = {name: Database(f"sqlite:///{folder}/{name}.db") for name in DATABASES}
    prepare(files["api"], api_schema.metadata, "kilonova.db.migrations.api")
    for name in ("cell0", "cell1"):
        prepare(files[name], cell_schema.metadata, "kilonova.db.migrations.cell")
    cell1 = bootstrap_cells(files["api"], "cell0", "cell1", "local:///")
    bootstrap_flavors(files["api"])
    bootstrap_images(images.make_world(files["images"], folder / "pictures"), owner=PROJECT)
    bootstrap_network(
        files["network"], admin_project=SERVICE, demo_project=PROJECT, private_cidr="127.100.0.0/16",
        public_cidr="127.200.0.0/24",
    )  # fmt: skip
    volumes.make_app(files["volumes"], images=lambda _ctx, _image: {})
    prepare_placement(files["placement"])
    way = WsgiTransport(behind(placement.make_app(files["placement"]), ""))
    client = HttpPlacement(RestClient("placement", "http://placement", way, FixedToken("token", None)))
    bus = LocalBus()
    directory = AgentDirectory(lambda: [files["cell1"]], 60)
    reports = AgentReports(files["cell1"], files["api"], cell1, bus, NewHosts(), lambda *_: None, directory)
    bus.serve("conductor", reports.handlers())
    driver = SimulatedDriver(str(folder / "guests.db"), hosts=HOSTS)
    agent = Agent("agent-1", bus, driver, client, AgentSettings(periodic_enable=False), folder)
    agent.start()
    assert agent.wait_ready(30)
    agent.stop()
    driver.close()
    bus.close()
    for database in files.values():
        database.dispose()
    return folder


def new_cloud(folder: Path, **options: Any) -> Cloud:
    """A cloud of its own in a folder that does not exist yet."""
    shutil.copytree(template(), folder)
    return Cloud(folder, **options)
