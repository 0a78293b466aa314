"""Users, agents, services and kills in any order: when the dust has settled, everything is as the servers need it."""

from __future__ import annotations

import shutil
from typing import Any

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from kilonova.conductor.reconcilers import allocations as orphan_allocations
from kilonova.conductor.rounds import RECONCILERS
from kilonova.core.context import preserved, service_context
from tests.workflows.census import assert_stable
from tests.workflows.cloud import HOSTS, new_cloud, quick_folder
from tests.workflows.harness import Crash, Faults, When
from tests.workflows.stories import boot, from_volume, remove


class Interleavings(RuleBasedStateMachine):
    """Up to a handful of servers; time passes, casts run one by one, and anything may die."""

    @initialize(slow=st.booleans(), bad=st.sets(st.integers(1, HOSTS), max_size=3))
    def new(self, slow: bool, bad: set[int]) -> None:
        self.folder = quick_folder()
        self.cloud = new_cloud(self.folder / "cloud", slow_plug=slow)
        self.cloud.bad_hosts = {f"sim-000{number}" for number in bad}
        self.servers: list[str] = []

    def _do(self, whole: bool, action: Any) -> None:
        """Something that may run into the kill that is ordered."""
        try:
            with preserved():
                service_context()
                action()
        except Crash:
            self.cloud.kill(whole=whole)

    @rule(count=st.integers(1, 3), volumes=st.booleans(), networks=st.sampled_from([None, "none"]), whole=st.booleans())
    def create(self, count: int, volumes: bool, networks: Any, whole: bool) -> None:
        if len(self.servers) < 6:
            devices = from_volume() if volumes else None
            self._do(whole, lambda: self.servers.extend(boot(self.cloud, count, devices=devices, networks=networks)))

    @precondition(lambda self: self.servers)
    @rule(which=st.integers(0, 5), whole=st.booleans())
    def delete(self, which: int, whole: bool) -> None:
        self._do(whole, lambda: remove(self.cloud, self.servers[which % len(self.servers)]))

    @rule(tasks=st.integers(1, 6), whole=st.booleans())
    def work(self, tasks: int, whole: bool) -> None:
        for _ in range(tasks):
            self._do(whole, self.cloud.process.pool.run_one)

    @rule(whole=st.booleans())
    def tell(self, whole: bool) -> None:
        self._do(whole, self.cloud.pump)

    @rule(whole=st.booleans())
    def wait(self, whole: bool) -> None:
        self._do(whole, self.cloud.process.timers.jump)  # type: ignore[union-attr]
        self._do(whole, self.cloud.beat)

    @rule(when=st.sampled_from(["before", "after", "effect"]), soon=st.integers(1, 8))
    def order_a_kill(self, when: When, soon: int) -> None:
        self.cloud.faults = Faults(soon, when)
        self.cloud.faults.armed = True

    @rule(whole=st.booleans())
    def kill(self, whole: bool) -> None:
        self.cloud.kill(whole=whole)

    @rule()
    def agent_dies_or_comes_back(self) -> None:
        if self.cloud.process.agent is None:
            self.cloud.start_agent()
        else:
            self.cloud.stop_agent()

    @rule(service=st.sampled_from(["network", "volume", "placement"]), whole=st.booleans())
    def a_service_is_away_for_a_moment(self, service: str, whole: bool) -> None:
        self.cloud.away = {service}
        self._do(whole, self.cloud.process.pool.run_one)
        self.cloud.away = set()

    def teardown(self) -> None:
        if not hasattr(self, "cloud"):
            return
        cloud = self.cloud
        try:
            cloud.faults = Faults()
            if cloud.process.agent is None:
                cloud.start_agent()
            cloud.run()
            cloud.rounds.run("guests")  # an agent may have been down while its guests' servers went
            cloud.run()
            assert_stable(cloud)
            cloud.clock.seconds += orphan_allocations.GRACE_S + 1000
            cloud.work()
            assert [cloud.rounds.run(row.name) for row in RECONCILERS] == [0] * len(RECONCILERS)
            for uuid in assert_stable(cloud):  # those too whose request was killed before it was answered
                remove(cloud, uuid)
            cloud.run()
            assert assert_stable(cloud) == {}
        finally:
            cloud.close()
            shutil.rmtree(self.folder, ignore_errors=True)


TestInterleavings = Interleavings.TestCase
TestInterleavings.settings = settings(
    max_examples=40, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck),
    database=None, phases=(Phase.generate,),  # shrinking takes minutes: run it by hand
)  # fmt: skip
