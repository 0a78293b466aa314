"""A virtual host of a test's own on the broker that KILONOVA_TEST_RABBITMQ names, or a broker that a test may kill."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from kilonova.core import ids

VARIABLE = "KILONOVA_TEST_RABBITMQ"


def broker() -> str:
    """The broker's URL without a virtual host. Skips the test, and says why, where there is none to be used."""
    url = os.environ.get(VARIABLE)
    if not url:
        pytest.skip(f"{VARIABLE} names no broker")
    if shutil.which("rabbitmqctl") is None or os.geteuid() != 0:
        pytest.skip("making a virtual host takes rabbitmqctl and root")
    return url.rsplit("/", 1)[0] if url.count("/") > 2 else url


@contextmanager
def virtual_host() -> Iterator[str]:
    """The URL of a new virtual host, which is gone afterwards with all that is in it."""
    url, name = broker(), f"kilonova_test_{ids.new_hex()[:12]}"
    _rabbitmqctl("add_vhost", name)
    try:
        _rabbitmqctl("set_permissions", "-p", name, urlsplit(url).username or "guest", ".*", ".*", ".*")
        yield f"{url}/{name}"
    finally:
        _rabbitmqctl("delete_vhost", name)


def remove_queues(url: str, names: Iterable[str]) -> None:
    """Take queues away with what is in them, so that the next test on the virtual host finds it as new."""
    import kombu

    with kombu.Connection(url.replace("rabbit://", "amqp://", 1)) as connection:
        channel: Any = connection.default_channel
        for name in names:
            channel.queue_delete(name)


class OwnBroker:
    """A second broker with a node name, a port and a directory of its own. It keeps its messages over a `kill`."""

    def __init__(self) -> None:
        broker()
        self._node = f"kilonova_test_{ids.new_hex()[:12]}@localhost"
        self._directory = Path(tempfile.mkdtemp(prefix="kilonova-rabbitmq-"))
        shutil.chown(self._directory, "rabbitmq", "rabbitmq")
        self._port, self._distribution = _free_ports(2)
        self.url = f"rabbit://guest:guest@127.0.0.1:{self._port}/"

    def start(self) -> None:
        """Come up, as far as taking connections."""
        environment = {
            "NODENAME": self._node, "NODE_IP_ADDRESS": "127.0.0.1", "NODE_PORT": self._port,
            "DIST_PORT": self._distribution, "PID_FILE": self._directory / "pid",
            "MNESIA_BASE": self._directory / "mnesia", "LOG_BASE": self._directory / "log",
            "CONFIG_FILE": self._directory / "none", "ENABLED_PLUGINS_FILE": self._directory / "none",
        }  # fmt: skip
        settings = [f"RABBITMQ_{name}={value}" for name, value in environment.items()]
        command = ["runuser", "-u", "rabbitmq", "--", "env", *settings, "rabbitmq-server", "-detached"]
        subprocess.run(command, check=True, timeout=60, cwd=self._directory, capture_output=True)
        end = time.monotonic() + 60
        while not self._listens():
            assert time.monotonic() < end, "the broker does not come up"
            time.sleep(0.1)

    def kill(self) -> None:
        """kill -9."""
        os.kill(int((self._directory / "pid").read_text()), signal.SIGKILL)
        while self._listens():
            time.sleep(0.05)

    def remove(self) -> None:
        """Be gone, whatever the state."""
        with suppress(OSError, ValueError):
            self.kill()
        shutil.rmtree(self._directory, ignore_errors=True)

    def _listens(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self._port)) == 0


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()


def _rabbitmqctl(*arguments: str) -> None:
    done = subprocess.run(["rabbitmqctl", "-q", *arguments], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, f"rabbitmqctl {' '.join(arguments)}: {done.stderr or done.stdout}"
