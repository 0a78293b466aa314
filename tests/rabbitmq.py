"""A virtual host of a test's own, on the broker that KILONOVA_TEST_RABBITMQ names."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
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


def _rabbitmqctl(*arguments: str) -> None:
    done = subprocess.run(["rabbitmqctl", "-q", *arguments], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, f"rabbitmqctl {' '.join(arguments)}: {done.stderr or done.stdout}"
