"""`kilonova bootstrap`: what Compute and Placement need in an identity service. It adds what is missing.

Made are the roles, the project `service`, the users nova and placement with their roles on it, the services in the
catalogue, and the endpoints whose addresses are given; of images, network and volumes only those.
"""

from __future__ import annotations

import argparse
import logging
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from kilonova.cmd import configuration, os_cloud
from kilonova.core import clock

if TYPE_CHECKING:
    from kilonova.clients.accounts import Accounts

PASSWORD: Final = "KILONOVA_SERVICE_PASSWORD"
_INTERFACES: Final = ("public", "internal", "admin")
_SERVICES: Final = {  # option to service type and an example
    "compute": ("compute", "http://controller:8774/v2.1"),
    "placement": ("placement", "http://controller:8778"),
    "image": ("image", "http://controller:8780/image"),
    "network": ("network", "http://controller:8780/networking"),
    "volume": ("block-storage", "http://controller:8780/volume/v3"),
}
_SAY_EVERY: Final = 5.0
_PAUSE: Final = 1.0


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add = parser.add_argument
    text = "an administrator's cloud in clouds.yaml (default: OS_CLOUD, or the OS_* variables)"
    add("--os-cloud", metavar="NAME", help=text)
    for service, (_, example) in _SERVICES.items():
        text = f"its endpoints, such as {example}; with INTERFACE= only the public, internal or admin one; repeatable"
        add(f"--{service}-url", type=_address, action="append", default=[], metavar="[INTERFACE=]URL", help=text)
    add("--region", help="region of the endpoints (default: that of the credentials, or RegionOne)")
    add("--domain", default="default", help="domain of the service users, by id or name (default %(default)s)")
    add("--service-password", metavar="TEXT",
        help=f"password of nova and placement; shows in the list of processes, {PASSWORD} does not")  # fmt: skip
    configuration.patience(parser, "an identity service")


def run(arguments: argparse.Namespace) -> int:
    """Make what is missing and say what was done."""
    from kilonova.clients.accounts import Accounts

    logging.getLogger("keystoneauth").setLevel(logging.ERROR)  # what it warns of, we say
    login = os_cloud.login(arguments.os_cloud)
    region = arguments.region or login.region or "RegionOne"
    accounts = Accounts(login.session, login.auth_url, region, arguments.domain)
    _wait(accounts, arguments.wait)
    urls = {kind: _by_interface(getattr(arguments, f"{option}_url")) for option, (kind, _) in _SERVICES.items()}
    password = arguments.service_password or os.environ.get(PASSWORD) or None
    for done in accounts.ensure(password, urls):
        print(f"{done.how:<8} {done.what:<9} {done.name}", flush=True)
    return 0


def _wait(accounts: Accounts, seconds: float, say: Callable[[str], None] = configuration.say) -> None:
    """Until the identity service answers."""
    from kilonova.clients.accounts import IdentityUnreachable

    deadline, said = clock.monotonic() + seconds, float("-inf")
    while True:
        try:
            return accounts.check()
        except IdentityUnreachable as error:
            now = clock.monotonic()
            if now >= deadline:
                raise
            if now - said >= _SAY_EVERY:
                say(f"Waiting: {error.text}")
                said = now
            clock.sleep(min(_PAUSE, deadline - now))


def _by_interface(given: list[tuple[str, str]]) -> dict[str, str]:
    """One address for all interfaces, and what is said of single ones."""
    everywhere = [url for interface, url in given if not interface]
    urls = dict.fromkeys(_INTERFACES, everywhere[-1]) if everywhere else {}
    return urls | {interface: url for interface, url in given if interface}


def _address(text: str) -> tuple[str, str]:
    interface, separator, url = text.partition("=")
    if not separator or "/" in interface:
        interface, url = "", text
    if interface and interface not in _INTERFACES:
        raise argparse.ArgumentTypeError(f"{interface} is none of {', '.join(_INTERFACES)}")
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise argparse.ArgumentTypeError(f"{url} is not an address such as http://HOST:PORT/PATH")
    return interface, url.rstrip("/")
