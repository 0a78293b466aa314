"""Every message goes to the bus of the cell it is for, and one address is opened once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from kilonova.bus import calls
from kilonova.bus.bus import Handler, NobodyServes, NoBroker
from kilonova.cells.buses import CellBuses


class Heard:
    """A bus that keeps what it is given."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.got: list[Any] = []
        self.closed = False

    def call(self, row: Any, request: Any, *, to: str = "", ctx: Any = None) -> Any:
        self.got.append((row.name, request, to))
        return self.name

    def cast(self, row: Any, request: Any, *, to: str = "", ctx: Any = None) -> None:
        self.got.append((row.name, request, to))

    def serve(self, topic: str, handlers: Mapping[str, Handler], *, address: str = "") -> Callable[[], None]:
        self.got.append((topic, tuple(handlers), address))
        return lambda: None

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def heard() -> dict[str, Heard]:
    return {"top": Heard("top")}


@pytest.fixture
def buses(heard: dict[str, Heard]) -> CellBuses:
    def open_bus(address: str) -> Heard:
        assert address not in heard
        heard[address] = Heard(address)
        return heard[address]

    return CellBuses(
        heard["top"], open_bus, {"api": None, "c1": "amqp://one", "c2": "amqp://two", "c3": None}.__getitem__,
        {"a2": "c2"}.get,
    )  # fmt: skip


def test_a_wake_up_goes_to_the_conductors_of_its_database(buses: CellBuses, heard: dict[str, Heard]) -> None:
    for database in ("api", "c1", "c2", "c3", "c1"):
        buses.cast(calls.wake_workflow, calls.Wake(database, "w"))
    assert [one[1].database for one in heard["top"].got] == ["api", "c3"]
    assert [one[1].database for one in heard["amqp://one"].got] == ["c1", "c1"]
    assert [one[1].database for one in heard["amqp://two"].got] == ["c2"]


def test_events_are_parted_by_cell(buses: CellBuses, heard: dict[str, Heard]) -> None:
    events = calls.Events(tuple(calls.Event(cell, f"s{n}", "x") for n, cell in enumerate(("c1", "c2", "c1"))))
    buses.cast(calls.deliver_events, events)
    assert [event.server for event in heard["amqp://one"].got[0][1].events] == ["s0", "s2"]
    assert [event.server for event in heard["amqp://two"].got[0][1].events] == ["s1"]


def test_a_call_to_an_agent_goes_to_the_cell_it_is_in(buses: CellBuses, heard: dict[str, Heard]) -> None:
    answer: Any = buses.call(calls.console_output, calls.ConsoleOutput("h", "s"), to="a2")
    assert answer == "amqp://two"
    with pytest.raises(NobodyServes):
        buses.call(calls.console_output, calls.ConsoleOutput("h", "s"), to="nobody")


def test_the_scheduler_is_in_the_region(buses: CellBuses, heard: dict[str, Heard]) -> None:
    buses.cast(calls.hosts_changed, calls.HostsChanged())
    assert heard["top"].got[0][0] == "hosts_changed"


def test_a_process_of_a_cell_reaches_the_region(heard: dict[str, Heard]) -> None:
    def open_bus(address: str) -> Heard:
        return heard.setdefault(address, Heard(address))

    of_cell = CellBuses(heard["top"], open_bus, {"api": "amqp://region", "c1": None}.__getitem__, {"a1": "c1"}.get)
    of_cell.cast(calls.hosts_changed, calls.HostsChanged())
    of_cell.cast(calls.wake_workflow, calls.Wake("api", "w"))
    of_cell.call(calls.console_output, calls.ConsoleOutput("h", "s"), to="a1")
    assert [one[0] for one in heard["amqp://region"].got] == ["hosts_changed", "wake_workflow"]
    assert [one[0] for one in heard["top"].got] == ["console_output"]


def test_a_bus_that_could_not_be_opened_is_tried_again(heard: dict[str, Heard]) -> None:
    answers: list[Any] = [NoBroker(), Heard("amqp://one")]

    def open_bus(address: str) -> Heard:
        found = answers.pop(0)
        if isinstance(found, Exception):
            raise found
        return found  # type: ignore[no-any-return]

    buses = CellBuses(heard["top"], open_bus, {"c1": "amqp://one"}.__getitem__, {}.get)
    with pytest.raises(NoBroker):
        buses.cast(calls.wake_workflow, calls.Wake("c1", "w"))
    buses.cast(calls.wake_workflow, calls.Wake("c1", "w"))
    assert answers == []


def test_closing_closes_every_bus(buses: CellBuses, heard: dict[str, Heard]) -> None:
    buses.cast(calls.wake_workflow, calls.Wake("c1", "w"))
    buses.close()
    assert all(bus.closed for bus in heard.values())
