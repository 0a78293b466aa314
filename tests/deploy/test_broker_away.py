"""A broker is killed, stays away, and comes back: casts wait and none is lost, calls fail soon and work again."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from kilonova.bus import calls
from kilonova.bus.bus import NoBroker
from kilonova.conf.load import load
from kilonova.core.errors import Unavailable
from tests.rabbitmq import OwnBroker

if TYPE_CHECKING:
    from kilonova.bus.amqp import AmqpBus

BACK_WITHIN = 30.0  # seconds after the broker takes connections
QUESTION = calls.ConsoleOutput("h1", "s1")


@pytest.fixture(scope="module")
def broker() -> Iterator[OwnBroker]:
    made = OwnBroker()
    try:
        made.start()
        yield made
    finally:
        made.remove()


@pytest.fixture
def connect(broker: OwnBroker) -> Iterator[Callable[..., AmqpBus]]:
    """Makes buses, which are closed all at once."""
    from kilonova.bus.amqp import AmqpBus

    conf = load([], {"transport_url": broker.url, "rpc_response_timeout": 3})
    made: list[AmqpBus] = []

    def make(**more: Any) -> AmqpBus:
        made.append(AmqpBus(conf, **more))
        return made[-1]

    yield make
    closing = [threading.Thread(target=bus.close) for bus in made]
    for thread in closing:
        thread.start()
    for thread in closing:
        thread.join()


def until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + BACK_WITHIN
    while not true():
        assert time.monotonic() < end, "it does not come to pass"
        time.sleep(0.1)


def answers(bus: AmqpBus) -> bool:
    try:
        return bus.call(calls.console_output, QUESTION, to="a1").output == "text"
    except Unavailable:
        return False


class Sender:
    """Casts one message after the other from a thread of its own."""

    def __init__(self, bus: AmqpBus) -> None:
        self.sent: list[str] = []
        self._bus, self._stop = bus, threading.Event()
        self._thread = threading.Thread(target=self._send, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(BACK_WITHIN)
        assert not self._thread.is_alive()

    def _send(self) -> None:
        while not self._stop.wait(0.002):
            name = f"w{len(self.sent)}"
            self._bus.cast(calls.wake_workflow, calls.Wake("api", name))
            self.sent.append(name)


def test_a_kill_under_load_loses_no_cast_and_a_clients_calls_fail_soon_and_then_work_again(
    broker: OwnBroker, connect: Callable[..., AmqpBus]
) -> None:
    seen: list[str] = []
    client, server, other = connect(for_clients=True), connect(), connect()
    client.connect()
    server.serve("agent", {"console_output": lambda ctx, r: calls.ConsoleText("text")}, address="a1")
    server.serve("conductor", {"wake_workflow": lambda ctx, r: seen.append(r.workflow)}, address="c1")
    assert answers(client)
    sender = Sender(other)
    time.sleep(2)  # see below
    until(lambda: len(sender.sent) > 50)

    broker.kill()
    for _ in range(2):
        began = time.monotonic()
        with pytest.raises(NoBroker):
            client.call(calls.console_output, QUESTION, to="a1")
        assert time.monotonic() - began < 5
    before = len(sender.sent)
    broker.start()

    until(lambda: answers(client))
    until(lambda: len(sender.sent) > before + 50)
    sender.stop()
    until(lambda: set(sender.sent) <= set(seen))


def test_what_waits_for_a_stopped_agent_survives_a_kill_and_a_server_waits_for_its_broker(
    broker: OwnBroker, connect: Callable[..., AmqpBus]
) -> None:
    seen: list[tuple[str, ...]] = []
    handlers = {"refresh_hosts": lambda ctx, r: seen.append(r.hosts)}
    first, second = connect(), connect()
    first.serve("agent", handlers, address="a2")()  # served, and stopped at once
    for number in range(20):
        first.cast(calls.refresh_hosts, calls.Refresh((f"h{number}",)), to="a2")
    time.sleep(2)  # RabbitMQ 3.10 never again elects the leader of a queue that was made within a second of the kill
    broker.kill()
    starting = threading.Thread(target=second.serve, args=("agent", handlers), kwargs={"address": "a2"}, daemon=True)
    starting.start()
    time.sleep(1)
    assert starting.is_alive()
    broker.start()
    starting.join(BACK_WITHIN)
    until(lambda: sorted(seen) == sorted((f"h{number}",) for number in range(20)))


def test_a_bus_ends_although_its_broker_is_away(broker: OwnBroker, connect: Callable[..., AmqpBus]) -> None:
    bus = connect()
    bus.serve("conductor", {"wake_workflow": lambda ctx, r: None}, address="c3")
    bus.cast(calls.wake_workflow, calls.Wake("api", "w"))
    broker.kill()
    began = time.monotonic()
    bus.close()
    assert time.monotonic() - began < 20
