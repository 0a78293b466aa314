"""How a server of any transport answers one message: decode, run the handler, encode. It knows of no transport."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from kilonova.bus import codec
from kilonova.bus.bus import Handler, NobodyServes
from kilonova.bus.calls import CALLS
from kilonova.core import log
from kilonova.core.context import from_message, preserved, service_context
from kilonova.core.errors import KilonovaError

LOG = logging.getLogger(__name__)


def checked(topic: str, handlers: Mapping[str, Handler]) -> dict[str, Handler]:
    """The handlers as they are; ValueError for a name that is no row of the topic."""
    for name in handlers:
        if name not in CALLS or CALLS[name].topic != topic:
            raise ValueError(f"{name} is no row of topic {topic}")
    return dict(handlers)


def answer(topic: str, handlers: Mapping[str, Handler], data: bytes) -> bytes:
    """Decode, run, encode; the thread's context is given back. Never raises an Exception.

    The handler's log lines are those of the service that the topic is named after.
    """
    name = "?"
    before = log.enter(topic)
    with preserved():
        try:
            row, request, context = codec.decode_request(data)
            name = row.name
            handler = handlers.get(name)
            if handler is None:
                raise NobodyServes(topic=topic, address=f"the server that got {name}")
            ctx = service_context() if context is None else from_message(context)
            return codec.encode_reply(row, handler(ctx, request))
        except KilonovaError as error:
            LOG.debug("%s answered %s: %s", name, error.code, error)
            return codec.encode_fault(error)
        except Exception as error:
            LOG.exception("handler of %s failed", name)
            return codec.encode_fault(error)
        finally:
            log.leave(before)
