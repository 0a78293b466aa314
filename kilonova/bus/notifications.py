"""Notifications: what happened, told to whoever listens, in the formats and on the topics that Nova uses.

They wait for nobody and hold nobody up: a bounded queue, and a thread of its own that sends. What finds the queue full
is dropped and counted. Without a driver nothing is made at all. It must not know what is told.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from kilonova.core import clock
from kilonova.core.context import Context

LOG = logging.getLogger(__name__)

QUEUED: Final = 1000
_SAY_EVERY: Final = 60.0  # seconds
_STOP_WITHIN: Final = 5.0

Payload = Callable[[], Mapping[str, Any]]


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
    dropped: how many found the queue full or could not be sent. sent: how many were.
    """

    def __init__(
        self, sender: Callable[[], Sender] | None, formats: frozenset[bool] = frozenset((True, False)),
        queued: int = QUEUED,
    ) -> None:  # fmt: skip
        self._open, self._formats = sender, formats if sender is not None else frozenset()
        self._queue: deque[tuple[str, str, Payload, bool, Mapping[str, Any]]] = deque()
        self._queued = queued
        self._some = threading.Condition()
        self._ending = False
        self._thread: threading.Thread | None = None
        self._said, self._unsaid = float("-inf"), 0
        self.dropped = self.sent = 0

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
        with self._some:
            if len(self._queue) < self._queued and not self._ending:
                context = ctx.to_message() if ctx is not None else {}
                self._queue.append((event_type, publisher, payload, versioned, context))
                self._some.notify()
                return
            self._drop()

    def start(self) -> None:
        """Begin to send, where there is something to send with."""
        self._ending = False
        if self._open is not None:
            self._thread = threading.Thread(target=self._work, name="notifications", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Send what is waiting, within a few seconds, and end."""
        with self._some:
            self._ending = True
            self._some.notify()
        if self._thread is not None:
            self._thread.join(_STOP_WITHIN)

    def _work(self) -> None:
        sender: Sender | None = None
        assert self._open is not None
        while (taken := self._next()) is not None:
            event_type, publisher, payload, versioned, context = taken
            try:
                sender = sender or self._open()
                sender.send(Notification(event_type, publisher, payload(), versioned, context))
            except Exception as error:  # whatever it is, the next one is to be sent
                LOG.debug("The notification %s could not be sent", event_type, exc_info=error)
                with self._some:
                    self._drop()
            else:
                self.sent += 1
        if sender is not None:
            sender.close()

    def _next(self) -> tuple[str, str, Payload, bool, Mapping[str, Any]] | None:
        """The next one; None when it is time to end."""
        with self._some:
            while not self._queue and not self._ending:
                self._some.wait()
            return self._queue.popleft() if self._queue else None

    def _drop(self) -> None:
        self.dropped += 1
        self._unsaid += 1
        now = clock.monotonic()
        if now - self._said >= _SAY_EVERY:
            text = "%d notifications could not be sent: their broker is away or too slow"
            LOG.warning(text, self._unsaid)
            self._said, self._unsaid = now, 0


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
