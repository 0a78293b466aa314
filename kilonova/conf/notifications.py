"""`[notifications]` and `[oslo_messaging_notifications]`: what others are told of the work, and how it gets to them."""

from __future__ import annotations

from oslo_config import cfg

OPTS = (
    cfg.StrOpt(
        "notification_format", default="unversioned", choices=["both", "versioned", "unversioned"],
        help="Which of its two formats notifications are sent in.",
    ),
    cfg.ListOpt(
        "versioned_notifications_topics", default=["versioned_notifications"],
        help="Topics of versioned notifications.",
    ),
)

MESSAGING = (
    cfg.MultiStrOpt(
        "driver", default=[],
        help="Drivers of oslo.messaging that send notifications (messagingv2, log …), repeatable; unset sends none.",
    ),
    cfg.StrOpt("transport_url", secret=True, help="Their message broker; unset is [DEFAULT] transport_url."),
    cfg.ListOpt("topics", default=["notifications"], help="Topics of unversioned notifications."),
    cfg.IntOpt("retry", default=-1, help="How often a notification is tried again; -1 until it is sent."),
)
