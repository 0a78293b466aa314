"""Notifications: what is sent where, what a full queue or a broker that is away costs."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kilonova.bus import notifications
from kilonova.bus.notifications import Notification, Notifications, from_conf
from kilonova.conf.load import ConfigError, load
from kilonova.core.context import Context
from tests.rabbitmq import virtual_host

EVENT, WHO = "thing.done", "nova-thing:h1"


class Sent:
    """A sender that remembers, and that waits or fails when it is told to."""

    def __init__(self) -> None:
        self.seen: list[Notification] = []
        self.go, self.closed = threading.Event(), False
        self.fails = False
        self.go.set()

    def send(self, notification: Notification) -> None:
        self.go.wait(10)
        if self.fails:
            raise OSError("away")
        self.seen.append(notification)

    def close(self) -> None:
        self.closed = True


def configured(tmp_path: Path, text: str, **options: Any) -> Any:
    file = tmp_path / "kilonova.conf"
    file.write_text(text)
    return load([file], options, warn=False)


def tell(to: Notifications, number: int = 1, *, versioned: bool = True) -> None:
    to.send(EVENT, lambda: {"number": number}, WHO, versioned=versioned, ctx=Context(request_id="req-1"))


def test_what_was_told_is_sent_in_order_before_the_end() -> None:
    sent = Sent()
    made = Notifications(lambda: sent)
    made.start()
    for number in range(5):
        tell(made, number)
    made.stop()
    assert [row.payload["number"] for row in sent.seen] == [0, 1, 2, 3, 4]
    assert (sent.seen[0].publisher, sent.seen[0].context["request_id"], made.sent) == (WHO, "req-1", 5)
    assert sent.closed


def test_who_tells_never_waits_and_what_finds_no_room_is_dropped_and_counted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    made = Notifications(Sent, queued=2)  # not started: nothing leaves the queue
    with caplog.at_level(logging.WARNING):
        for number in range(5):
            tell(made, number)
    assert made.dropped == 3
    assert len(caplog.records) == 1, "it is said once a minute"


def test_what_cannot_be_sent_is_counted_and_the_next_is_tried() -> None:
    sent = Sent()
    sent.fails = True
    made = Notifications(lambda: sent)
    made.start()
    tell(made)
    made.stop()
    assert (made.sent, made.dropped) == (0, 1)


def test_a_payload_that_cannot_be_made_hurts_nobody() -> None:
    sent = Sent()
    made = Notifications(lambda: sent)
    made.start()
    made.send(EVENT, lambda: {"x": 1 // 0}, WHO, versioned=True)
    tell(made, 2)
    made.stop()
    assert [row.payload["number"] for row in sent.seen] == [2]


def test_a_format_that_nobody_wants_is_not_even_made() -> None:
    made = Notifications(Sent, frozenset((True,)), queued=1)
    for _ in range(3):
        made.send(EVENT, lambda: {"x": 1 // 0}, WHO, versioned=False)
    assert (made.wants(versioned=True), made.wants(versioned=False), made.dropped) == (True, False, 0)


@pytest.mark.parametrize("text", ["", "[oslo_messaging_notifications]\ndriver = noop\n"])
def test_without_a_driver_nothing_is_made(tmp_path: Path, text: str) -> None:
    made = from_conf(configured(tmp_path, text))
    made.start()
    tell(made)
    made.stop()
    assert not made.wants(versioned=True)
    assert not made.wants(versioned=False)
    assert made.dropped == made.sent == 0


def test_without_a_driver_the_messaging_library_is_not_imported() -> None:
    code = (
        "import sys; from kilonova.conf.load import load; from kilonova.bus.notifications import from_conf;"
        "from_conf(load(warn=False)); sys.exit('oslo_messaging' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0


@pytest.mark.parametrize(
    ("form", "wanted"),
    [("unversioned", (False, True)), ("versioned", (True, False)), ("both", (True, True))],
)  # fmt: skip
def test_the_configured_format_decides(tmp_path: Path, form: str, wanted: tuple[bool, bool]) -> None:
    text = f"[oslo_messaging_notifications]\ndriver = log\n[notifications]\nnotification_format = {form}\n"
    made = from_conf(configured(tmp_path, text))
    assert (made.wants(versioned=True), made.wants(versioned=False)) == wanted


def test_a_driver_that_needs_a_broker_without_one_is_refused_at_start(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="needs a message broker"):
        from_conf(configured(tmp_path, "[oslo_messaging_notifications]\ndriver = messagingv2\n"))


def test_the_log_driver_writes_them_into_the_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    text = "[oslo_messaging_notifications]\ndriver = log\n[notifications]\nnotification_format = versioned\n"
    made = from_conf(configured(tmp_path, text))
    made.start()
    with caplog.at_level(logging.INFO):
        tell(made)
        made.stop()
    (record,) = [row for row in caplog.records if row.name == f"oslo.messaging.notification.{EVENT}"]
    said = json.loads(record.getMessage())
    assert (said["event_type"], said["publisher_id"], said["priority"]) == (EVENT, WHO, "INFO")
    assert said["payload"] == {"number": 1}


@pytest.fixture
def broker() -> Iterator[str]:
    with virtual_host() as url:
        yield url


def test_over_a_broker_each_format_comes_to_its_topic(tmp_path: Path, broker: str) -> None:
    text = f"""
[oslo_messaging_notifications]
driver = messagingv2
transport_url = {broker}
topics = old
[notifications]
notification_format = both
versioned_notifications_topics = new
"""
    made = from_conf(configured(tmp_path, text))
    made.start()
    tell(made, 1, versioned=True)
    tell(made, 2, versioned=False)
    made.stop()
    assert made.sent == 2
    assert [message["payload"] for message in messages(broker, "new.info")] == [{"number": 1}]
    (old,) = messages(broker, "old.info")
    assert (old["payload"], old["event_type"], old["publisher_id"]) == ({"number": 2}, EVENT, WHO)
    assert old["_context_request_id"] == "req-1"


def messages(url: str, queue: str) -> list[dict[str, Any]]:
    """What waits in a queue of a virtual host."""
    import kombu

    found: list[dict[str, Any]] = []
    with kombu.Connection(url.replace("rabbit://", "amqp://", 1)) as connection:
        channel: Any = connection.default_channel
        while (message := channel.basic_get(queue, no_ack=True)) is not None:
            found.append(json.loads(json.loads(message.body)["oslo.message"]))
    return found


def test_a_part_of_a_payload_has_its_name_and_version() -> None:
    assert notifications.versioned("ThingPayload", "1.2", {"a": 1}) == {
        "nova_object.namespace": "nova", "nova_object.name": "ThingPayload", "nova_object.version": "1.2",
        "nova_object.data": {"a": 1},
    }  # fmt: skip
