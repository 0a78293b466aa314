"""What the RabbitMQ transport does beyond the suite that all transports pass: its options, its limits of time."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kilonova.bus import amqp, calls
from kilonova.bus.amqp import AmqpBus, messaging_options
from kilonova.bus.bus import BrokerAway, NoAnswer, NobodyServes
from kilonova.conf.load import ConfigError, load
from kilonova.core.request_spec import FlavorSpec, RequestSpec
from tests.rabbitmq import remove_queues

URL = "rabbit://user:hidden@127.0.0.1:5672/vhost"
QUESTION = calls.ConsoleOutput("h1", "s1")
CHOICE = calls.SelectDestinations(RequestSpec("p", "u", FlavorSpec(1, "1", "f", 64, 1, 1)), ("s",))


def options(tmp_path: Path, text: str = "", url: str = URL) -> Any:
    file = tmp_path / "kilonova.conf"
    file.write_text(text)
    return messaging_options(load([file], {"transport_url": url, "rpc_response_timeout": 7}))


def test_our_defaults_hold_and_what_the_operator_sets_wins(tmp_path: Path) -> None:
    made = options(tmp_path, "[oslo_messaging_rabbit]\nrabbit_interval_max = 9\nheartbeat_rate = 2\n")
    rabbit = made.oslo_messaging_rabbit
    assert (rabbit.rabbit_quorum_queue, rabbit.kombu_reconnect_delay, rabbit.rabbit_retry_backoff) == (True, 0.1, 1)
    assert (rabbit.rabbit_interval_max, rabbit.heartbeat_rate) == (9, 2)
    assert (made.control_exchange, made.rpc_response_timeout, made.transport_url) == ("kilonova", 7, URL)
    assert made.oslo_messaging_metrics.metrics_enabled is False


def test_a_cell_may_have_a_broker_of_its_own(tmp_path: Path) -> None:
    conf = load([], {"transport_url": URL})
    other = "rabbit://u:p@127.0.0.2:5672/cell2"
    assert (messaging_options(conf, other).transport_url, messaging_options(conf).transport_url) == (other, URL)


@pytest.mark.parametrize("url", ["fake://", "kombu+memory://", "amqps://h", "rabbit://u:hidden@h:port/v", "hidden"])
def test_a_url_that_is_no_rabbitmqs_is_refused_without_its_password(tmp_path: Path, url: str) -> None:
    with pytest.raises(ConfigError, match="transport_url cannot be used") as caught:
        options(tmp_path, url=url)
    assert "hidden" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [("heartbeat_rate = x", "heartbeat_rate"), ("rabbit_interval_max = 0", "rabbit_interval_max"),
     ("rabbit_stream_fanout = true", "rabbit_transient_quorum_queue")],
)  # fmt: skip
def test_an_option_of_the_library_that_is_wrong_is_refused_at_start(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        options(tmp_path, f"[oslo_messaging_rabbit]\n{text}\n")


@pytest.fixture
def bus(rabbit_url: str) -> Iterator[AmqpBus]:
    conf = load([], {"transport_url": rabbit_url, "rpc_response_timeout": 2, "long_rpc_timeout": 30})
    made = AmqpBus(conf)
    yield made
    made.close()
    remove_queues(rabbit_url, ["agent", "agent.a1", "agent.a2", "scheduler", "scheduler.any", "conductor"])


def test_connecting_to_a_broker_where_nobody_is_takes_no_answer(bus: AmqpBus) -> None:
    bus.connect()
    with pytest.raises(NobodyServes):
        bus.cast(calls.wake_workflow, calls.Wake("api", "w"))


def test_a_broker_that_is_not_there_is_said_at_once_with_its_address_and_without_the_password() -> None:
    url = "rabbit://me:secret@127.0.0.1:1,me:secret@127.0.0.1:2/cloud"
    bus = AmqpBus(load([], {"transport_url": url}))
    began = time.monotonic()
    with pytest.raises(BrokerAway) as error:
        bus.connect()
    assert time.monotonic() - began < 2
    assert error.value.text == (
        "The message broker at 127.0.0.1:1, 127.0.0.1:2 /cloud does not answer: connection refused."
    )


def test_a_broker_that_refuses_us_is_said_in_one_sentence_without_the_password(rabbit_url: str) -> None:
    begin, end = rabbit_url.split("@")
    scheme, name = begin.split("//")
    user = name.split(":")[0]
    wrong = AmqpBus(load([], {"transport_url": f"{scheme}//{user}:hidden@{end}"}))
    with pytest.raises(ConfigError, match="refuses transport_url") as caught:
        wrong.connect()
    assert "hidden" not in str(caught.value)
    nowhere = AmqpBus(load([], {"transport_url": f"{rabbit_url}_not"}))
    with pytest.raises(ConfigError, match="_not not found"):
        nowhere.serve("conductor", {"wake_workflow": lambda ctx, r: None})


def test_a_handler_that_takes_too_long_is_no_answer_and_a_long_call_may_take_longer(bus: AmqpBus) -> None:
    release = threading.Event()

    def slow(_ctx: Any, _request: Any) -> Any:
        release.wait(20)
        return calls.ConsoleText("late")

    def choose(_ctx: Any, _request: Any) -> Any:
        time.sleep(3.5)
        return calls.Destinations(())

    bus.serve("agent", {"console_output": slow}, address="a1")
    bus.serve("scheduler", {"select_destinations": choose})
    waiting = threading.Thread(target=pytest.raises, args=(NoAnswer, bus.call, calls.console_output, QUESTION),
                               kwargs={"to": "a1"})  # fmt: skip
    waiting.start()
    assert bus.call(calls.select_destinations, CHOICE) == calls.Destinations(())
    waiting.join()
    with pytest.raises(NoAnswer, match="agent did not answer console_output in 2 seconds"):
        bus.call(calls.console_output, QUESTION, to="a1")
    release.set()


def test_a_long_call_whose_server_dies_ends_long_before_its_time(bus: AmqpBus) -> None:
    bus.serve("scheduler", {"select_destinations": lambda ctx, r: calls.Destinations(())})()  # its queue is left
    began = time.monotonic()
    with pytest.raises(NoAnswer):
        bus.call(calls.select_destinations, CHOICE)
    assert time.monotonic() - began < 4


def test_who_dies_with_a_long_call_is_noticed_before_a_short_call_would_end(
    bus: AmqpBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(amqp, "_SILENCE", 2)
    bus._seconds.update(short=60, long=120)
    bus.serve("scheduler", {"select_destinations": lambda ctx, r: calls.Destinations(())})()
    began = time.monotonic()
    with pytest.raises(NoAnswer):
        bus.call(calls.select_destinations, CHOICE)
    assert time.monotonic() - began < 4


def test_an_address_is_served_once_by_a_bus_and_can_be_again_after_it_stopped(bus: AmqpBus) -> None:
    handlers = {"console_output": lambda ctx, r: calls.ConsoleText("again")}
    stop = bus.serve("agent", handlers, address="a2")
    with pytest.raises(ValueError, match="a2 already"):
        bus.serve("agent", handlers, address="a2")
    stop()
    stop()
    bus.serve("agent", handlers, address="a2")
    assert bus.call(calls.console_output, QUESTION, to="a2").output == "again"
