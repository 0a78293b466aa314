"""The pipeline is pure: plug-ins reach nothing, filters commute, and a decision is the same for the same arguments."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kilonova.scheduler
from kilonova.core.request_spec import GroupSpec
from kilonova.scheduler.host_state import HostState
from kilonova.scheduler.registry import FILTERS, WEIGHERS
from kilonova.scheduler.request import Request
from kilonova.scheduler.settings import SchedulerSettings
from kilonova.scheduler.stages import run_filters
from kilonova.scheduler.trace import Trace
from kilonova.scheduler.weighing import Ranking
from tests.scheduler.states import aggregate, request, state

ROOM = Path(kilonova.scheduler.__file__).parent
PLUGINS = [path for folder in ("filters", "weighers", "request_filters") for path in (ROOM / folder).glob("*.py")]
IMPURE = {"host_store", "service", "claim", "candidates", "pipeline", "placing", "registry"}


def imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            found.add(node.module or "")
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return {name for name in found if name.startswith("kilonova.")}


@pytest.mark.parametrize("path", PLUGINS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_plugin_imports_only_values(path: Path) -> None:
    for name in imports(path):
        assert name.startswith(("kilonova.core.", "kilonova.scheduler.")) or name == "kilonova.core", name
        assert name.removeprefix("kilonova.scheduler.") not in IMPURE
        assert name != "kilonova.core.clock"


def test_only_the_claim_writes() -> None:
    writers = {
        path.stem
        for path in ROOM.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and node.attr in ("claim", "delete_allocations", "write")
    }
    assert writers == {"claim"}


AGGREGATES = (
    aggregate("1", "h0", "h1", metadata={"filter_tenant_id": "project", "instance_type": "m1.small", "ssd": "true"}),
    aggregate("2", "h1", "h2", metadata={"filter_tenant_id": "other", "max_io_ops_per_host": "3"}),
)
hosts = st.lists(
    st.fixed_dictionaries({
        "service_disabled": st.booleans(), "alive": st.booleans(), "num_io_ops": st.integers(0, 10),
        "num_instances": st.integers(40, 60), "free_ram_mb": st.integers(0, 20000), "failed_builds": st.integers(0, 2),
        "hypervisor_type": st.sampled_from(["QEMU", "xen"]),
    }),
    min_size=1, max_size=6,
)  # fmt: skip


def states_of(rows: list[dict[str, object]]) -> list[HostState]:
    return [
        state(f"h{n}", aggregates=tuple(row for row in AGGREGATES if f"h{n}" in row.hosts), **values)
        for n, values in enumerate(rows)
    ]


def asked() -> Request:
    group = GroupSpec(uuid="g", policy="anti-affinity")
    wanted = {"capabilities:hypervisor_type": "QEMU"}
    return request(aggregates=AGGREGATES, group=group, placed={"member": "h3"}, extra_specs=wanted)


def survivors(names: list[str], states: list[HostState]) -> list[int]:
    trace = Trace(None, (), None, dropped_by=bytearray(len(states)))
    return run_filters([FILTERS[name] for name in names], asked(), states, list(range(len(states))), trace)


@given(rows=hosts, names=st.permutations(sorted(FILTERS)))
def test_the_hosts_that_pass_do_not_depend_on_the_order_of_the_filters(
    rows: list[dict[str, object]], names: list[str]
) -> None:
    states = states_of(rows)
    assert survivors(names, states) == survivors(sorted(FILTERS), states)


@given(rows=hosts)
def test_asking_twice_gives_the_same_and_changes_nothing(rows: list[dict[str, object]]) -> None:
    states = states_of(rows)
    copies = list(states)
    weighers = list(WEIGHERS.values())
    everyone = range(len(states))
    first = survivors(sorted(FILTERS), states), Ranking(weighers, asked(), states).scores(everyone)[0].tolist()
    second = survivors(sorted(FILTERS), states), Ranking(weighers, asked(), states).scores(everyone)[0].tolist()
    assert first == second
    assert states == copies


def test_settings_hold_nothing_that_could_be_changed() -> None:
    for name in SchedulerSettings.__dataclass_fields__:
        assert isinstance(getattr(SchedulerSettings(), name), (str, int, float, bool, tuple, type(None)))
