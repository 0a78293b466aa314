"""A Kilonova of our own, started as a user would start it, for as long as it is measured."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Running:
    """ready_s: seconds from the start of the process to the line that says ready."""

    pid: int
    ready_s: float
    login: dict[str, str]


@contextmanager
def running(state_dir: Path, hosts: int) -> Iterator[Running]:
    """Start `kilonova up` on a free port and wait until it is ready; stop it at the end."""
    command = [sys.executable, "-m", "kilonova.cmd.main", "up", "--state-dir", str(state_dir), "--port", "0"]
    started = time.perf_counter()
    child = subprocess.Popen([*command, "--hosts", str(hosts)], stdout=subprocess.PIPE, text=True)
    try:
        ready = _ready(child)
        yield Running(child.pid, round(ready - started, 2), _login(state_dir))
    finally:
        child.terminate()
        child.wait(60)


def _ready(child: subprocess.Popen[str]) -> float:
    assert child.stdout is not None
    for line in child.stdout:
        if line.startswith("ready"):
            return time.perf_counter()
    raise RuntimeError(f"kilonova up ended with {child.wait()} before it was ready")


def _login(state_dir: Path) -> dict[str, str]:
    url = json.loads((state_dir / "process.json").read_text())["url"]
    secrets = json.loads((state_dir / "secrets.json").read_text())
    return {
        "OS_AUTH_URL": f"{url}/identity", "OS_USERNAME": "admin", "OS_PASSWORD": secrets["admin_password"],
        "OS_PROJECT_NAME": "admin", "OS_USER_DOMAIN_ID": "default", "OS_PROJECT_DOMAIN_ID": "default",
    }  # fmt: skip
