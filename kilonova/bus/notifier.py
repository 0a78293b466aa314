"""Notifications through oslo.messaging: to whatever the configured drivers reach. Only `notifications` imports it,
and only where a driver is configured.
"""

from __future__ import annotations

from typing import Any, Final

import oslo_messaging as messaging
from oslo_config import cfg

from kilonova.bus.amqp import check, library_options
from kilonova.bus.notifications import Notification
from kilonova.conf.load import ConfigError
from kilonova.core.context import from_message

EXCHANGE: Final = "nova"
"""Where Nova sends them and listeners look for them; `control_exchange` names another."""
_OVER_A_BROKER: Final = frozenset(("messaging", "messagingv2"))


def notifier_options(conf: Any) -> cfg.ConfigOpts:
    """The library's options for notifications: as the files have them, its own defaults otherwise. ConfigError."""
    group = conf.oslo_messaging_notifications
    options, groups = library_options(conf)
    options.set_default("control_exchange", EXCHANGE)
    for name, value in (("driver", group.driver), ("topics", group.topics), ("retry", group.retry)):
        options.set_override(name, value, group="oslo_messaging_notifications")
    url = group.transport_url or conf.transport_url
    if url:
        options.set_override("transport_url", url)
        check(options, groups)
    elif _OVER_A_BROKER & set(group.driver):
        raise ConfigError(
            "[oslo_messaging_notifications] driver needs a message broker: set transport_url there or in [DEFAULT]"
        )
    return options


class _Plain:
    """The library's own serializer leaves the context out, by which listeners tell requests apart."""

    def serialize_context(self, context: Any) -> dict[str, Any]:
        """What the library lets through of it, as a map."""
        return dict(context.to_dict())

    def serialize_entity(self, _context: Any, entity: Any) -> Any:
        """As it is."""
        return entity


class Notifier:
    """See `notifications.Sender`. Waits for a broker that is away, as long as `retry` says."""

    def __init__(self, options: cfg.ConfigOpts, versioned_topics: tuple[str, ...]) -> None:
        self._transport = messaging.get_notification_transport(options)
        plain = _Plain()
        self._by_format = {
            True: messaging.Notifier(self._transport, topics=list(versioned_topics), serializer=plain),
            False: messaging.Notifier(self._transport, serializer=plain),
        }

    def send(self, notification: Notification) -> None:
        """Send one of priority INFO."""
        notifier = self._by_format[notification.versioned].prepare(publisher_id=notification.publisher)
        context = from_message(dict(notification.context), overwrite=False)
        notifier.info(context, notification.event_type, dict(notification.payload))

    def close(self) -> None:
        """Close its connections."""
        self._transport.cleanup()
