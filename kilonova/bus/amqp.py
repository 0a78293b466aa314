"""The bus between processes: RabbitMQ, reached through oslo.messaging, which of ours only this and `notifier` import.

A message is one JSON string of `codec`, context and errors included, so the library's serializers and remote
exceptions are not used. A message is acknowledged when it arrives, before its handler runs: what dies with a process
is sent again by whoever needs it (see `calls`). Importing this module costs 0.3 s and 36 MB; only `wiring` does, and
only where a transport URL is configured. A bus is not to be shared over a fork.
"""

from __future__ import annotations

import importlib
import logging
import socket
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, cast

from amqp.exceptions import AccessRefused, AMQPError, NotAllowed
from kombu.exceptions import KombuError
from oslo_config import cfg

from kilonova.bus import codec
from kilonova.bus.answer import answer, checked
from kilonova.bus.bus import BrokerAway, Handler, NoAnswer, NobodyServes, NoBroker
from kilonova.bus.calls import Call, Rep, Req
from kilonova.conf.load import ConfigError
from kilonova.core import clock
from kilonova.core.context import Context, current
from kilonova.sql.engine import transaction_open

with warnings.catch_warnings():  # it imports eventlet, which nothing of ours uses and which says that it is old
    warnings.simplefilter("ignore")
    import oslo_messaging as messaging
    from oslo_messaging import opts

LOG = logging.getLogger(__name__)

Groups = list[tuple[str | None, list[cfg.Opt]]]

EXCHANGE = "kilonova"
RABBIT_DEFAULTS: Mapping[str, Any] = {
    "rabbit_quorum_queue": True,  # waiting messages survive the broker; a classic queue of the library's does not
    "rabbit_qos_prefetch_count": 64,  # without a limit all that waits goes to whoever asks first
    "kombu_reconnect_delay": 0.1,
    "rabbit_retry_backoff": 1,
    "rabbit_interval_max": 2,  # after a broker's restart: back within 2 s instead of 8
}
"""Our defaults of `[oslo_messaging_rabbit]`; what an operator sets there wins."""

_METHOD = "message"  # the one method of every server; which row it is stands in the message
_SOME_SERVER = "any"  # the library wants a name for servers without an address; nobody sends to it
_NOBODY = "nobody"
_HANDLERS_END_WITHIN = 30.0  # seconds
_CONNECTIONS_END_WITHIN = 5.0  # they want a broker to say good-bye to
_CLIENT_RETRIES = 1  # a second or two; 0 would fail for good on a connection that the broker has closed meanwhile
_LOOK_SECONDS = 3.0
_SILENCE = 10  # seconds that the server of a long call may say nothing; whole ones, two at least
_BROKER_ERRORS = (messaging.MessagingException, AMQPError, KombuError, OSError)
# The library registers these on oslo.config's global object only, the second not in every release.
_STRAY_GROUPS = {
    "oslo_messaging_metrics": "oslo_messaging._metrics.client",
    "oslo_messaging_tracing": "oslo_messaging._tracing.client",
}


def messaging_options(conf: cfg.ConfigOpts, url: str | None = None) -> cfg.ConfigOpts:
    """The library's options, private to one bus: our defaults, then the files that `conf` was read from.

    url: instead of `conf.transport_url`, for a cell with a broker of its own. ConfigError for what cannot be used.
    """
    options, groups = library_options(conf)
    options.set_default("control_exchange", EXCHANGE)
    for name, value in RABBIT_DEFAULTS.items():
        options.set_default(name, value, group="oslo_messaging_rabbit")
    options.set_override("transport_url", url or conf.transport_url)
    options.set_override("rpc_response_timeout", conf.rpc_response_timeout)
    check(options, groups)
    return options


def library_options(conf: cfg.ConfigOpts) -> tuple[cfg.ConfigOpts, Groups]:
    """The library's options as the files have them, and which there are."""
    options = cfg.ConfigOpts()
    groups = [*opts.list_opts(), *_stray_options()]
    for group, rows in groups:
        options.register_opts(rows, group=group)
    options([], project="kilonova", default_config_files=list(conf.config_file or ()), default_config_dirs=[])
    return options, groups


def _stray_options() -> Iterator[tuple[str, list[cfg.Opt]]]:
    for group, module in _STRAY_GROUPS.items():
        with suppress(ModuleNotFoundError):
            yield group, getattr(importlib.import_module(module), group)


def check(own: cfg.ConfigOpts, groups: Groups) -> None:
    """ConfigError for an option, or a transport URL, that cannot be used."""
    for group, rows in groups:
        for option in rows:
            try:
                getattr(own[group] if group else own, option.dest)
            except (ValueError, cfg.Error) as error:
                words = " ".join(str(error).split())
                raise ConfigError(f"[{group or 'DEFAULT'}] {option.name} cannot be used: {words}") from None
    try:
        url = messaging.TransportURL.parse(own)
        usable = url.transport == "rabbit"
    except (messaging.InvalidTransportURL, ValueError):
        usable = False
    if not usable:  # without the URL itself, for there is a password in it
        raise ConfigError(
            "transport_url cannot be used: it is to look like rabbit://user:password@host:5672/vhost,"
            " with commas between several user:password@host:port"
        )
    rabbit = own.oslo_messaging_rabbit
    if rabbit.rabbit_stream_fanout and not (rabbit.rabbit_transient_quorum_queue and rabbit.rabbit_qos_prefetch_count):
        raise ConfigError(
            "[oslo_messaging_rabbit] rabbit_stream_fanout wants rabbit_transient_quorum_queue = true"
            " and a rabbit_qos_prefetch_count above 0"
        )


def _brokers(options: cfg.ConfigOpts) -> tuple[list[tuple[str, int]], str]:
    """Where the brokers are, and the same to be told; without names and passwords."""
    url = messaging.TransportURL.parse(options)
    places = [(host.hostname or "localhost", host.port or 5672) for host in url.hosts] or [("localhost", 5672)]
    return places, f"{', '.join(f'{host}:{port}' for host, port in places)} /{url.virtual_host or ''}"


def _look_for(places: list[tuple[str, int]], brokers: str) -> None:
    """Nothing when one of them takes a connection; BrokerAway."""
    reason = ""
    for host, port in places:
        try:
            socket.create_connection((host, port), timeout=_LOOK_SECONDS).close()
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
        else:
            return
    raise BrokerAway(brokers=brokers, reason=reason)


class AmqpBus:
    """See `bus.Bus`. Connections are made when they are first needed; `connect` makes them at once.

    for_clients: a client of the API waits while something is sent, so without a broker that fails after about two
    seconds. Otherwise the sender waits until there is one.
    """

    def __init__(self, conf: cfg.ConfigOpts, url: str | None = None, *, for_clients: bool = False) -> None:
        options = messaging_options(conf, url)
        self._seconds: dict[str, float] = {"short": conf.rpc_response_timeout, "long": conf.long_rpc_timeout}
        self._retries = _CLIENT_RETRIES if for_clients else None
        self._places, self._brokers = _brokers(options)
        self._transport = messaging.get_rpc_transport(options)
        self._client = messaging.get_rpc_client(
            self._transport,
            messaging.Target(),
            transport_options=messaging.TransportOptions(at_least_once=True),  # what nobody gets is said at once
        )
        self._lock = threading.Lock()
        self._servers: dict[object, _Server] = {}

    def connect(self) -> None:
        """See `Bus.connect`: make the connections of a first call.

        The connection for answers is made without a limit of tries, so a first call would otherwise wait there.
        BrokerAway, or ConfigError when the broker is there and refuses us.
        """
        _look_for(self._places, self._brokers)
        LOG.info("Connecting to the message broker at %s", self._brokers)
        nobody = self._client.prepare(topic=_NOBODY, timeout=self._seconds["short"])
        with self._refusals(), suppress(messaging.MessageUndeliverable):
            nobody.call({}, _METHOD, message="")

    def call(self, row: Call[Req, Rep], request: Req, *, to: str = "", ctx: Context | None = None) -> Rep:
        """See `Bus.call`. RuntimeError inside a write transaction, TypeError for a row that is cast."""
        if row.kind != "call":
            raise TypeError(f"{row.name} is cast, not called")
        if transaction_open():
            raise RuntimeError(f"call {row.name} inside a write transaction")
        data = codec.encode_request(row, request, ctx or current()).decode()
        short, seconds = self._seconds["short"], self._seconds[row.timeout]
        # The server of a long call says every so often that it is at work, or the caller waits no longer: who took
        # the message may have died with it.
        line = self._client.prepare(
            topic=row.topic, server=to or None, timeout=seconds, retry=self._retries,
            call_monitor_timeout=min(short, _SILENCE) if seconds > short else None,
        )  # fmt: skip
        with _our_errors(row, to):
            reply: str = line.call({}, _METHOD, message=data)
        return cast(Rep, codec.decode_reply(row, reply.encode()))

    def cast(self, row: Call[Req, Rep], request: Req, *, to: str = "", ctx: Context | None = None) -> None:
        """See `Bus.cast`. Returns when the broker has the message; waits for one that is away, unless for clients."""
        if row.kind != "cast":
            raise TypeError(f"{row.name} is called, not cast")
        data = codec.encode_request(row, request, ctx or current()).decode()
        with _our_errors(row, to):
            line = self._client.prepare(topic=row.topic, server=to or None, retry=self._retries)
            line.cast({}, _METHOD, message=data)

    def serve(self, topic: str, handlers: Mapping[str, Handler], *, address: str = "") -> Callable[[], None]:
        """See `Bus.serve`. Waits for the broker. The queue of an address outlives its server: what is sent to it
        meanwhile waits there. ValueError for a name that is no row, or an address that this bus serves already;
        ConfigError when the broker is there and refuses us.
        """
        server = _Server(self._transport, topic, checked(topic, handlers), address)
        key: object = (topic, address) if address else server
        with self._lock:
            if key in self._servers:
                raise ValueError(f"somebody serves {topic} at {address} already")
            self._servers[key] = server
        LOG.info("Serving %s %s through the message broker at %s", topic, address, self._brokers)
        try:
            with self._refusals():
                server.start()
        except BaseException:
            self._withdraw(key)
            raise
        return lambda: self._stop(key, server)

    def close(self) -> None:
        """Stop every server, all at once, let what they have taken end, and close the connections.

        What is still in the broker stays there for the next server. Gives up after half a minute, with a line in the
        log, when a handler does not end, and after five seconds more when the broker is away.
        """
        with self._lock:
            servers, self._servers = list(self._servers.values()), {}
        _together([server.stop for server in servers], "servers", _HANDLERS_END_WITHIN)
        _together([self._transport.cleanup], "groups of connections", _CONNECTIONS_END_WITHIN)

    @contextmanager
    def _refusals(self) -> Iterator[None]:
        """A wrong password or virtual host is for the operator to mend; waiting does not help."""
        try:
            yield
        except (AccessRefused, NotAllowed) as error:
            words = f"The message broker at {self._brokers} refuses transport_url: {error.reply_text}"
            raise ConfigError(words) from None

    def _stop(self, key: object, server: _Server) -> None:
        if self._withdraw(key) is server:
            server.stop()

    def _withdraw(self, key: object) -> _Server | None:
        with self._lock:
            return self._servers.pop(key, None)


class _Server:
    """One server of the library: a topic, an address within it."""

    def __init__(self, transport: Any, topic: str, handlers: Mapping[str, Handler], address: str) -> None:
        target = messaging.Target(topic=topic, server=address or _SOME_SERVER)
        self._topic, self._endpoint = topic, _Endpoint(topic, handlers)
        self._server = messaging.get_rpc_server(transport, target, [self._endpoint])

    def start(self) -> None:
        """Wait for the broker, then take messages."""
        self._server.start()

    def stop(self) -> None:
        """Take no more messages, let the handlers of those that were taken end: a second, six when it was idle."""
        try:
            self._server.stop()
            self._server.wait()
        except _BROKER_ERRORS as error:
            LOG.info("The broker was away when the server of %s stopped: %s", self._topic, error)
        # While the library closes its channel it still acknowledges messages, and hands them to nobody.
        listener = getattr(self._server.listener, "_poll_style_listener", None)
        for incoming in getattr(listener, "incoming", ()):
            incoming.reply(self._endpoint.message({}, incoming.message["args"]["message"]))


class _Endpoint:
    """What the library calls for a message. Each public method can be called over the wire, so there is one."""

    def __init__(self, topic: str, handlers: Mapping[str, Handler]) -> None:
        self._topic, self._handlers = topic, handlers

    def message(self, _context: dict[str, Any], message: str) -> str:
        """Answer one message of `codec`."""
        return answer(self._topic, self._handlers, message.encode()).decode()


@contextmanager
def _our_errors(row: Call[Any, Any], to: str) -> Iterator[None]:
    """The library's errors as ours."""
    began = clock.monotonic()
    try:
        yield
    except messaging.MessageUndeliverable:
        raise NobodyServes(topic=row.topic, address=to or "its topic") from None
    except messaging.MessagingTimeout:
        seconds = round(clock.monotonic() - began)
        raise NoAnswer(topic=row.topic, name=row.name, seconds=seconds) from None
    except _BROKER_ERRORS as error:
        LOG.warning("%s could not be sent to %s %s: %s", row.name, row.topic, to, error)
        raise NoBroker from error


def _together(functions: list[Callable[[], None]], what: str, seconds: float) -> None:
    """Run all at the same time, and wait for them so many seconds at most."""
    threads = [threading.Thread(target=function, daemon=True) for function in functions]
    for thread in threads:
        thread.start()
    end = clock.monotonic() + seconds
    for thread in threads:
        thread.join(max(0.0, end - clock.monotonic()))
    if late := sum(thread.is_alive() for thread in threads):
        LOG.warning("%s of %s %s of the bus did not end within %s seconds", late, len(threads), what, seconds)
