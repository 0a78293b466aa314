"""What the commands of single services share: read the configuration, wait for databases, run until a signal."""

from __future__ import annotations

import argparse
import logging
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kilonova.core import errors

if TYPE_CHECKING:
    from kilonova.wiring import Cloud

LOG = logging.getLogger(__name__)

_AGAIN_AFTER = 3.0  # seconds between looks for a database or a broker that is not there yet


class BadConfiguration(errors.Invalid):
    code, message = "bad_configuration", "The configuration cannot be used."


class AddressUnusable(errors.Conflict):
    code, message = "address_unusable", "Kilonova cannot listen at {url}: {reason}."


def options(parser: argparse.ArgumentParser, *, port: int | None = None, instances: bool = False) -> None:
    """Add the options: where it listens if it does, which of several it is if there may be."""
    add = parser.add_argument
    add("--config-file", type=Path, action="append", default=[], metavar="FILE", help="a kilonova.conf, repeatable")
    if port is not None:
        add("--host", default="127.0.0.1", metavar="ADDRESS", help="address to listen on (default %(default)s)")
        add("--port", type=int, default=port, help="port to listen on (default %(default)s)")
    if instances:
        text = "number of this process among several on this host, the same at every start (default %(default)s)"
        add("--instance", type=int, default=1, metavar="N", help=text)


def run(
    name: str, arguments: argparse.Namespace, build: Callable[[Any], Cloud], *, reloads: bool = False
) -> int:  # fmt: skip
    """Run a service until SIGTERM or SIGINT. build makes it from the loaded configuration.

    reloads: at SIGHUP it reads again what it read at its start; others end by it, as the system has it.
    """
    from kilonova.conf.load import ConfigError, load, warn_without_effect
    from kilonova.core import log

    application = "placement" if name == "placement" else "compute"
    try:
        conf = load(arguments.config_file, application=application, warn=False)
    except ConfigError as error:
        raise BadConfiguration(str(error)) from error
    log.setup(conf, f"kilonova-{name}")
    warn_without_effect(arguments.config_file, application=application)
    stopped = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.set())
    again = threading.Event()
    if reloads:
        signal.signal(signal.SIGHUP, lambda *_: again.set())
    service = _started(name, conf, build, stopped)
    if service is None:
        return 0
    if service.reload is not None:
        threading.Thread(target=reloading, args=(service.reload, again), name="reload", daemon=True).start()
    try:
        print(f"ready: kilonova {name}{f' at {service.base_url}' if service.base_url else ''}", flush=True)
        stopped.wait()
    finally:
        service.stop()
    return 0


def reloading(reload: Callable[[], None], again: threading.Event) -> None:
    """Do it each time it is asked for, for ever; one that fails is logged, and what was known stays."""
    while again.wait():
        again.clear()
        try:
            reload()
        except Exception:
            LOG.exception("What was read at the start could not be read again")
        else:
            LOG.info("Read again what was read at the start: SIGHUP")


def _started(name: str, conf: Any, build: Callable[[Any], Cloud], stopped: threading.Event) -> Cloud | None:
    """The service, as soon as what it needs is there; None when it was told to stop before.

    BadConfiguration, AddressUnusable, and what is wrong with databases and credentials.
    """
    from kilonova.conf.load import ConfigError
    from kilonova.sql.engine import unreachable
    from kilonova.sql.reach import reason

    while not stopped.is_set():
        try:
            return _start(build(conf))
        except errors.Unavailable as error:
            why = error.text
        except ConfigError as error:
            raise BadConfiguration(str(error)) from error
        except Exception as error:
            if not unreachable(error):
                raise
            why = f"The database does not answer: {reason(error)}."
        print(f"kilonova {name} waits: {why}", flush=True)
        LOG.warning("Waiting: %s", why)
        stopped.wait(_AGAIN_AFTER)
    return None


def _start(service: Cloud) -> Cloud:
    """Start it; what has started stops again when the rest cannot. AddressUnusable."""
    try:
        service.start()
    except BaseException as error:
        service.stop()
        if isinstance(error, OSError) and service.base_url:
            reason = (error.strerror or str(error)).lower()
            raise AddressUnusable(url=service.base_url, reason=reason) from error
        raise
    return service
