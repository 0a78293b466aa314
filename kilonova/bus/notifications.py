"""Notifications: what happened, told to whoever listens, in the formats and on the topics that Nova uses.

They wait for nobody and hold nobody up: a bounded queue, and a thread of its own that sends. What finds the queue full
is dropped and counted. Without a driver nothing is made at all. It must not know what is told.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from kilonova.core.aside import Aside
from kilonova.core.context import Context

QUEUED: Final = 1000

Payload = Callable[[], Mapping[str, Any]]
_Waiting = tuple[str, str, Payload, bool, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Notification:
    """One of them. versioned: which of the two formats, and so which topics. context: who asked."""

    event_type: str
    publisher: str
    payload: Mapping[str, Any]
    versioned: bool
    context: Mapping[str, Any]


class Sender(Protocol):
    """What brings them to others; `notifier` has the one of oslo.messaging."""

    def send(self, notification: Notification) -> None: ...

    def close(self) -> None: ...


class Notifications:
    """Takes notifications from any thread and sends them in its own, between `start` and `stop`.

    formats: the formats that are wanted, True for versioned. sender: opened in that thread, when the first is sent.
    """

    def __init__(
        self, sender: Callable[[], Sender] | None, formats: frozenset[bool] = frozenset((True, False)),
        queued: int = QUEUED,
    ) -> None:  # fmt: skip
        self._open, self._formats = sender, formats if sender is not None else frozenset()
        self._sender: Sender | None = None
        self._aside: Aside[_Waiting] = Aside(
            "notifications", self._send, queued=queued, at_once=1, end=self._close,
            lost="%d notifications could not be sent: their broker is away or too slow",
        )  # fmt: skip
        self.stop = self._aside.stop

    @property
    def dropped(self) -> int:
        """How many found the queue full or could not be sent."""
        return self._aside.dropped

    @property
    def sent(self) -> int:
        """How many were sent."""
        return self._aside.done

    def wants(self, *, versioned: bool) -> bool:
        """Whether notifications of this format are sent."""
        return versioned in self._formats

    def send(
        self, event_type: str, payload: Payload, publisher: str, *, versioned: bool, ctx: Context | None = None
    ) -> None:
        """Tell it, if the format is wanted and there is room. Never waits and never fails.

        payload: called in the thread that sends, so what it reads must not change. publisher: as `service:host`.
        """
        if versioned not in self._formats:
            return
        context = ctx.to_message() if ctx is not None else {}
        self._aside.add((event_type, publisher, payload, versioned, context))

    def start(self) -> None:
        """Begin to send, where there is something to send with."""
        if self._open is not None:
            self._aside.start()

    def _send(self, waiting: Sequence[_Waiting]) -> int:
        assert self._open is not None
        self._sender = self._sender or self._open()
        for event_type, publisher, payload, versioned, context in waiting:
            self._sender.send(Notification(event_type, publisher, payload(), versioned, context))
        return len(waiting)

    def _close(self) -> None:
        if self._sender is not None:
            self._sender.close()
            self._sender = None


def from_conf(conf: Any) -> Notifications:
    """As `[notifications]` and `[oslo_messaging_notifications]` say. ConfigError for what cannot be used."""
    if not set(conf.oslo_messaging_notifications.driver) - {"", "noop"}:
        return Notifications(None)
    from kilonova.bus import notifier

    options = notifier.notifier_options(conf)
    topics = tuple(conf.notifications.versioned_notifications_topics)
    wanted = {"both": (True, False), "versioned": (True,), "unversioned": (False,)}
    formats = frozenset(wanted[conf.notifications.notification_format])
    return Notifications(lambda: notifier.Notifier(options, topics), formats)


def versioned(name: str, version: str, data: Mapping[str, Any]) -> dict[str, Any]:
    """A payload, or a part of one, as versioned notifications have them."""
    return {
        "nova_object.namespace": "nova", "nova_object.name": name, "nova_object.version": version,
        "nova_object.data": dict(data),
    }  # fmt: skip
