"""What every transport offers. Two exist: threads in one process (`local`), RabbitMQ (`amqp`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from kilonova.bus.calls import Call, Rep, Req
from kilonova.core.context import Context
from kilonova.core.errors import Unavailable

Handler = Callable[[Context, Any], Any]


class NobodyServes(Unavailable):
    """The message could not be delivered: nobody serves the topic or has the address."""

    code, message = "nobody_serves", "No {topic} answers at {address}."


class NoAnswer(Unavailable):
    """The call was sent, and no answer came in time. It may have been carried out."""

    code, message = "no_answer", "The {topic} did not answer {name} in {seconds} seconds."


class NoBroker(Unavailable):
    """The broker took no message within the tries that the sender has. Whether an answer got lost is not known."""

    code, message = "no_broker", "The message broker cannot be reached."


class BrokerAway(NoBroker):
    """Nobody listens at the broker's address."""

    code, message = "broker_away", "The message broker at {brokers} does not answer: {reason}."


class Bus(Protocol):
    """Both transports encode and decode every message, so nothing works by sharing an object."""

    def connect(self) -> None:
        """Make what sending and being answered take; to be called once, at start. NoBroker when nobody is there."""
        ...

    def call(self, row: Call[Req, Rep], request: Req, *, to: str = "", ctx: Context | None = None) -> Rep:
        """Ask and wait. `to` is an agent's id. Raises the handler's domain error, NobodyServes, NoAnswer, NoBroker."""
        ...

    def cast(self, row: Call[Req, Rep], request: Req, *, to: str = "", ctx: Context | None = None) -> None:
        """Send and go on. NobodyServes when it is known that nobody will get it."""
        ...

    def serve(self, topic: str, handlers: Mapping[str, Handler], *, address: str = "") -> Callable[[], None]:
        """Handle the rows named in `handlers` for a topic, at an address for agents. Answers a function that stops."""
        ...

    def close(self) -> None:
        """Let running handlers end, then stop."""
        ...
