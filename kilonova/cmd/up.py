"""`kilonova up`: a whole cloud in this process.

What can be refused is refused before anything is made: options, then the port, then the state directory.
"""

from __future__ import annotations

import argparse
import errno
import gc
import os
import signal
import socket
import threading
from collections.abc import Callable
from ipaddress import IPv4Network, ip_network
from pathlib import Path
from typing import TYPE_CHECKING

from kilonova.cmd import state_dir
from kilonova.cmd.client_files import write_client_files
from kilonova.cmd.detach import in_background
from kilonova.cmd.greeting import greeting
from kilonova.cmd.state_dir import StateDir
from kilonova.conf.all_in_one import (
    DEFAULT_HOST,
    DEFAULT_HOSTS,
    DEFAULT_PORT,
    DEFAULT_PRIVATE_CIDR,
    DEFAULT_PUBLIC_CIDR,
    AllInOne,
)
from kilonova.core import clock, errors

if TYPE_CHECKING:
    from kilonova.wiring import Cloud

_started = clock.monotonic()


class AddressTaken(errors.Conflict):
    code = "address_taken"
    message = "Port {port} of {host} is taken: stop what listens there, or choose another port with --port."


class AddressUnusable(errors.Invalid):
    code, message = "address_unusable", "Kilonova cannot listen on port {port} of {host}: {reason}."


class FixedAtFirstStart(errors.Conflict):
    code = "fixed_at_first_start"
    message = "The cloud in {path} was made with {option} {known}: leave the option out, or start anew with --fresh."


class OverlappingNetworks(errors.Invalid):
    code, message = "overlapping_networks", "--private-cidr {private} and --public-cidr {public} overlap."


class NoSuchConfigFile(errors.Invalid):
    code, message = "no_such_config_file", "The configuration file {path} cannot be read: {reason}."


class BadConfiguration(errors.Invalid):
    code, message = "bad_configuration", "The configuration cannot be used."


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add = parser.add_argument
    add("--host", default=DEFAULT_HOST, metavar="ADDRESS", help="address to listen on (default %(default)s)")
    add("--port", type=_port, default=DEFAULT_PORT, help="port to listen on; 0 takes a free one (default %(default)s)")
    state_dir.configure(parser)
    add("--hosts", type=_hosts, metavar="N", help=f"simulated hypervisors (default {DEFAULT_HOSTS}, later as before)")
    for name, default in (("private", DEFAULT_PRIVATE_CIDR), ("public", DEFAULT_PUBLIC_CIDR)):
        text = f"addresses of the network {name}, at the first start (default {default})"
        add(f"--{name}-cidr", type=_network, metavar="CIDR", help=text)
    add("--admin-password", type=_password, metavar="TEXT", help="password of admin from now on (default: generated)")
    add("--fresh", action="store_true", help="delete what the state directory holds and start anew")
    add("--detach", action="store_true", help="return when the cloud is ready and leave it running")
    add("--config-file", type=Path, action="append", default=[], metavar="FILE", help="a kilonova.conf, repeatable")


def run(arguments: argparse.Namespace) -> int:
    """Check what was asked for, start, say so, wait for a signal, stop."""
    config_files = tuple(_readable(path.absolute()) for path in arguments.config_file)
    port = _free_port(arguments.host, arguments.port)
    path = state_dir.chosen(arguments)

    def serve(become_ready: Callable[[], None]) -> int:
        os.umask(0o077)  # databases and the log are their owner's, too
        with state_dir.hold(path, fresh=arguments.fresh) as directory:
            settings = _settings(arguments, directory, port, config_files)
            return _serve(settings, directory, become_ready, arguments.detach)

    return in_background(serve, path / "kilonova.out") if arguments.detach else serve(lambda: None)


def _serve(settings: AllInOne, directory: StateDir, become_ready: Callable[[], None], detached: bool) -> int:
    stopped = _stop_on_signals()
    gc.disable()  # a tenth of the start: nearly everything that it makes stays
    cloud = _build(settings)
    try:
        cloud.start()
        _collect_seldom()
        write_client_files(directory.path, cloud.base_url, settings.secrets)
        directory.write("process.json", {"pid": os.getpid(), "url": cloud.base_url, "hosts": settings.hosts})
        lines = greeting(settings, cloud.base_url, clock.monotonic() - _started, detached=detached)
        print(*lines, sep="\n", flush=True)
        become_ready()
        stopped.wait()
    except OSError as error:
        if error.errno == errno.EADDRINUSE:  # taken since it was looked at
            raise AddressTaken(host=settings.host, port=settings.port) from error
        raise
    finally:
        cloud.stop()
        directory.remove("process.json")
    return 0


def _collect_seldom() -> None:
    """Leave what the start made out of garbage collections, and have them wait for more garbage.

    What a request makes goes by its reference counts; searching a whole cloud's objects for cycles every few hundred
    objects costs a twentieth of a busy cloud's time, and pauses it.
    """
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()


def _build(settings: AllInOne) -> Cloud:
    """The cloud, not yet started. What is wrong with a configuration file is said in one sentence."""
    from kilonova import wiring
    from kilonova.conf.load import ConfigError

    try:
        return wiring.all_in_one(settings)
    except ConfigError as error:
        raise BadConfiguration(str(error)) from error


def _settings(
    arguments: argparse.Namespace, directory: StateDir, port: int, config_files: tuple[Path, ...]
) -> AllInOne:
    """What was asked for, completed by what the directory remembers; remembers it in turn."""
    known = directory.read("state.json") or {}
    for option, name in (("--private-cidr", "private_cidr"), ("--public-cidr", "public_cidr")):
        asked = getattr(arguments, name)
        if asked is not None and known.get(name, asked) != asked:
            raise FixedAtFirstStart(path=str(directory.path), option=option, known=known[name])
    private = arguments.private_cidr or known.get("private_cidr", DEFAULT_PRIVATE_CIDR)
    public = arguments.public_cidr or known.get("public_cidr", DEFAULT_PUBLIC_CIDR)
    if ip_network(private).overlaps(ip_network(public)):
        raise OverlappingNetworks(private=private, public=public)
    hosts = int(arguments.hosts or known.get("hosts", DEFAULT_HOSTS))
    directory.write("state.json", known | {"private_cidr": private, "public_cidr": public, "hosts": hosts})
    return AllInOne(
        host=arguments.host,
        port=port,
        state_dir=directory.path,
        hosts=hosts,
        private_cidr=private,
        public_cidr=public,
        secrets=state_dir.secrets(directory, admin_password=arguments.admin_password),
        config_files=config_files,
        reset_admin=arguments.admin_password is not None,
    )


def _stop_on_signals() -> threading.Event:
    """Set by the first SIGINT, SIGTERM or SIGHUP; the second ends the process at once (a restart repairs)."""
    stopped = threading.Event()

    def handle(number: int, _frame: object) -> None:
        if stopped.is_set():
            os._exit(128 + number)
        stopped.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, handle)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup asked for it to be ignored
        signal.signal(signal.SIGHUP, handle)
    return stopped


def _free_port(host: str, port: int) -> int:
    """The port, checked to be free on the host; a free one when it is 0."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
            probe.listen(1)  # with SO_REUSEADDR it is listening that fails where somebody listens
            return int(probe.getsockname()[1])
    except UnicodeError as error:  # a label of the name is empty or too long
        raise AddressUnusable(host=host, port=port, reason="that is no host name") from error
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise AddressTaken(host=host, port=port) from None
        reason = (error.strerror or str(error)).lower()
        raise AddressUnusable(host=host, port=port, reason=reason) from error


def _readable(path: Path) -> Path:
    try:
        with open(path, "rb"):
            return path
    except OSError as error:
        raise NoSuchConfigFile(path=str(path), reason=(error.strerror or str(error)).lower()) from error


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text} is not a port (0 to 65535)")
    return int(text)


def _hosts(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 100_000:
        raise argparse.ArgumentTypeError(f"{text} is not a number of hypervisors (1 to 100000)")
    return int(text)


def _network(text: str) -> str:
    try:
        network = ip_network(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text} is not a network: {error}") from error
    if not isinstance(network, IPv4Network) or network.prefixlen > 28:
        raise argparse.ArgumentTypeError(f"{text} is not an IPv4 network of at least 16 addresses")
    return str(network)


def _password(text: str) -> str:
    if not text or not text.isprintable() or len(text) > 128:
        raise argparse.ArgumentTypeError("a password has 1 to 128 printable characters")
    return text
