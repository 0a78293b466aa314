"""The bus that a process is on, and the credentials with which it calls others."""

from __future__ import annotations

from typing import Any

from kilonova.bus.bus import Bus
from kilonova.core.errors import Invalid

CREDENTIALS = ("service_user", "keystone_authtoken")
"""Option groups of which the first with an `auth_type` has the credentials."""


class NeedsSetting(Invalid):
    """A service cannot be without an option."""

    code, message = "needs_setting", "The configuration must set [{group}]{name} for this service."


def open_bus(conf: Any, url: str | None = None, *, for_clients: bool = False) -> Bus:
    """The bus of an address (unset: the configuration's), which must be a broker's between processes."""
    address = url or conf.transport_url
    if not address:
        raise NeedsSetting(group="DEFAULT", name="transport_url")
    from kilonova.bus.amqp import AmqpBus

    return AmqpBus(conf, address, for_clients=for_clients)
