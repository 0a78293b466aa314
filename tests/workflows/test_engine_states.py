"""Random interleavings: events early, late and twice; failures; lost casts; conductors killed, stalled and added."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kilonova.bus import calls
from kilonova.conductor.service import Conductor
from kilonova.core import clock
from kilonova.db.queries import journal as sql
from kilonova.workflows.engine import Engine
from kilonova.workflows.step import SilentRecorder
from tests.workflows.harness import (
    Crash,
    Faults,
    JumpingClock,
    ManualPool,
    ManualTimers,
    _Holder,
    expire_leases,
    live_rows,
)
from tests.workflows.toy import CELL, SERVER, begin, check_end, kept_events, make_world, toy

LEASE = 15.0
SUBJECTS = {f"w{n}": f"{n}" * 8 + SERVER[8:] for n in range(1, 4)}
RARELY = st.integers(0, 4).map(lambda n: n == 4)
"""For rules that would end everything too soon: hypothesis draws all rules equally often."""


class Process:
    """One conductor process: what a kill takes away."""

    def __init__(self, world: Any, me: str, jumping: JumpingClock) -> None:
        self.me, self.pool, self.timers = me, ManualPool(), ManualTimers(jumping)
        self.engine = Engine(world, [toy()], SilentRecorder(), me=me, pool=self.pool, timers=self.timers)
        handlers = Conductor.handlers(_Holder(self.engine))  # type: ignore[arg-type]
        self.stop = world.bus.serve("conductor", handlers, address=me)


class Interleavings(RuleBasedStateMachine):
    """Three servers, up to three conductors, a world that does its worst."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.jumping = JumpingClock()
        self.before = clock.install(self.jumping)
        self.faults = Faults()
        self.processes: list[Process] = []
        self.number = 0
        self.seen: dict[str, tuple[int, str | None, str]] = {}

    @initialize(hosts=st.integers(1, 3), bad=st.sets(st.integers(1, 3)), away=st.integers(0, 4))
    def new_world(self, hosts: int, bad: set[int], away: int) -> None:
        self.world, self.bus_pool = make_world(self.folder, self.faults)
        self.world.outside.bad_hosts = {f"host-{n}" for n in bad}
        self.world.outside.unavailable = away
        for id_, subject in SUBJECTS.items():
            begin(self.world, [f"host-{n}" for n in range(1, hosts + 1)], id_=id_, subject=subject)
        self.start_conductor()

    # -- conductors ------------------------------------------------------------------------------------------------

    def start_conductor(self, me: str | None = None) -> None:
        if me is None:
            self.number += 1
            me = f"c{self.number}"
        process = Process(self.world, me, self.jumping)
        self.processes.append(process)
        process.engine.recover()

    @precondition(lambda self: len(self.processes) < 3)
    @rule()
    def another_conductor(self) -> None:
        self.start_conductor()

    def kill(self, process: Process) -> None:
        process.stop()
        self.processes.remove(process)

    @precondition(lambda self: self.processes)
    @rule(which=st.integers(0, 2), same=st.booleans(), really=RARELY)
    def a_conductor_is_killed(self, which: int, same: bool, really: bool) -> None:
        if not really:
            return
        process = self.some(which)
        self.kill(process)
        if same:
            self.start_conductor(process.me)

    @rule(really=RARELY)
    def everybody_stalls_beyond_the_lease(self, really: bool) -> None:
        if really:
            self.stall()

    def stall(self) -> None:
        self.jumping.seconds += LEASE + 1
        expire_leases(*self.world.database(CELL))

    @precondition(lambda self: len(self.processes) > 1)
    @rule(which=st.integers(0, 2), turns=st.integers(1, 20))
    def a_stalled_conductor_is_adopted_and_goes_on(self, which: int, turns: int) -> None:
        stalled = self.some(which)
        other = next(process for process in self.processes if process is not stalled)
        self.stall()
        other.engine.renew()
        other.engine.poll()
        for _ in range(turns):
            other.pool.run_one()
            self.bus_pool.run_one()
            self.plug_all(other)
        stalled.timers.jump()
        stalled.pool.run()

    @precondition(lambda self: self.processes)
    @rule(which=st.integers(0, 2))
    def a_conductor_keeps_house(self, which: int) -> None:
        process = self.some(which)
        process.engine.renew()
        process.engine.poll()

    @precondition(lambda self: self.processes)
    @rule(which=st.integers(0, 2), count=st.integers(1, 10))
    def a_conductor_works(self, which: int, count: int) -> None:
        process = self.some(which)
        for _ in range(count):
            process.pool.run_one()

    @precondition(lambda self: self.processes)
    @rule(which=st.integers(0, 2), commits=st.integers(1, 3), after=st.booleans(), same=st.booleans())
    def a_conductor_is_killed_while_it_works(self, which: int, commits: int, after: bool, same: bool) -> None:
        process = self.some(which)
        faults = self.faults
        faults.at, faults.when = faults.commits + commits, "after" if after else "before"
        faults.armed, faults.fired = True, False
        try:
            process.pool.run()
        except Crash:
            self.kill(process)
            if same:
                faults.armed = False
                self.start_conductor(process.me)
        faults.armed = False

    @precondition(lambda self: self.processes)
    @rule(which=st.integers(0, 2))
    def a_deadline_passes(self, which: int) -> None:
        self.some(which).timers.jump()

    # -- the others ------------------------------------------------------------------------------------------------

    @rule(count=st.integers(1, 5))
    def messages_arrive(self, count: int) -> None:
        for _ in range(count):
            self.bus_pool.run_one()

    @rule(really=RARELY)
    def messages_are_lost(self, really: bool) -> None:
        if really:
            self.bus_pool.tasks.clear()

    @precondition(lambda self: self.bus_pool.tasks)
    @rule()
    def a_message_is_doubled_and_overtaken(self) -> None:
        self.bus_pool.tasks.append(self.bus_pool.tasks[0])
        self.bus_pool.tasks.rotate(1)

    @rule(deaf=st.integers(1, 2))
    def the_agent_does_not_hear(self, deaf: int) -> None:
        self.world.agent.deaf = deaf

    @precondition(lambda self: self.processes)
    @rule(restart=st.booleans())
    def the_agent_beats(self, restart: bool) -> None:
        self.world.agent.epoch += restart
        self.processes[-1].engine.agent_seen("agent-1", self.world.agent.epoch, [])

    @precondition(lambda self: self.processes)
    @rule(which=st.integers(0, 2), subject=st.sampled_from(sorted(SUBJECTS.values())), port=st.integers(0, 9))
    def the_network_says_plugged(self, which: int, subject: str, port: int) -> None:
        """Of a port that there may not be yet, or that is another server's, or for the second time."""
        self.deliver(self.some(which), subject, "network-vif-plugged", f"port-{port}")

    @precondition(lambda self: self.processes)
    @rule(which=st.integers(0, 2))
    def the_network_says_plugged_of_all(self, which: int) -> None:
        self.plug_all(self.some(which))

    @precondition(lambda self: self.processes)
    @rule(which=st.integers(0, 2), id_=st.sampled_from(sorted(SUBJECTS)), really=RARELY)
    def somebody_cancels(self, which: int, id_: str, really: bool) -> None:
        if really:
            self.deliver(self.some(which), SUBJECTS[id_], "cancel", id_)

    def some(self, which: int) -> Process:
        return self.processes[which % len(self.processes)]

    def deliver(self, process: Process, subject: str, name: str, key: str) -> None:
        process.engine.deliver([calls.Event(CELL, subject, name, key)])

    def plug_all(self, process: Process) -> None:
        for port, (device, _host) in list(self.world.outside.ports.items()):
            self.deliver(process, device.split("/")[0], "network-vif-plugged", port)

    # -- what holds at any time ----------------------------------------------------------------------------------------

    @invariant()
    def an_end_is_an_end_and_epochs_only_rise(self) -> None:
        if not hasattr(self, "world"):
            return
        database, tables = self.world.database(CELL)
        with database.read() as connection:
            rows = connection.execute(tables.workflows.select()).all()
        for row in rows:
            epoch, owner, state = self.seen.get(row.id, (0, None, "running"))
            assert row.epoch >= epoch
            assert row.owner == owner or row.epoch > epoch
            assert state in sql.LIVE or row.state == state
            self.seen[row.id] = (row.epoch, row.owner, row.state)

    # -- the promise -------------------------------------------------------------------------------------------------

    def teardown(self) -> None:
        try:
            if hasattr(self, "world"):
                self.to_the_end()
                check_end(self.world, subjects=SUBJECTS)
                assert self.world.agent.violations == []
        finally:
            clock.install(self.before)
            if hasattr(self, "world"):
                self.world.database(CELL)[0].dispose()
            shutil.rmtree(self.folder)

    def to_the_end(self) -> None:
        self.world.agent.deaf = 0
        if not self.processes:
            self.start_conductor()
        expire_leases(*self.world.database(CELL))  # the dead are found out
        for _ in range(300):
            for process in self.processes:
                process.engine.renew()
            for process in self.processes:
                process.engine.poll()
            while sum(pool.run() for pool in (self.bus_pool, *(p.pool for p in self.processes))):
                pass
            if not live_rows(self.world):
                assert all(process.engine.live == 0 for process in self.processes)
                assert kept_events(self.world) == 0
                return
            self.plug_all(self.processes[0])
            self.jumping.seconds += 5
            for process in self.processes:
                process.timers.fire()
        raise AssertionError(f"no end: {live_rows(self.world)}")


TestInterleavings = Interleavings.TestCase
TestInterleavings.settings = settings(
    max_examples=60, stateful_step_count=50, deadline=None, derandomize=True,
    suppress_health_check=list(HealthCheck),
)  # fmt: skip
