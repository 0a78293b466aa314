"""The process that holds a state directory, seen from outside: is it there, does it answer, make it stop.

It is asked at its own address, past any proxy that the environment names.
"""

from __future__ import annotations

import json
import os
import signal
import urllib.request
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kilonova.cmd import state_dir
from kilonova.core import clock


@dataclass(frozen=True)
class CloudProcess:
    """What is known of a cloud: `state` is stopped, starting, ready or silent (it runs but does not answer)."""

    state: str
    pid: int | None = None
    url: str | None = None
    hosts: int | None = None
    health: dict[str, Any] = field(default_factory=dict)


def look(path: Path) -> CloudProcess:
    """The cloud of a state directory as it is now."""
    process = state_dir.running(path)
    if process is None:
        return CloudProcess("stopped")
    if not process:
        return CloudProcess("starting")
    health = ask(process["url"])
    state = "silent" if health is None else "ready"
    return CloudProcess(state, process["pid"], process["url"], process.get("hosts"), health or {})


def ask(url: str, *, timeout: float = 5) -> dict[str, Any] | None:
    """What `/healthz` answers, `{}` when that is no JSON object; None when it is not 200."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"{url}/healthz", timeout=timeout) as answer:
            document = json.loads(answer.read() or b"{}")
    except OSError:  # refused, timed out, or an error status
        return None
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


def stop(path: Path, pid: int, *, timeout: float) -> bool:
    """Ask the process to stop and wait until it has let go of the directory; False when it has not in time."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
    deadline = clock.monotonic() + timeout
    while state_dir.running(path) is not None:
        if clock.monotonic() > deadline:
            return False
        clock.sleep(0.05)
    return True
