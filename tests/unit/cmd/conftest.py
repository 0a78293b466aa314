"""A `kilonova` command whose cloud is a web server with nothing but /healthz, to test the command around it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

_PROGRAM = '''
import sys, threading, types
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

class Health(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path == "/healthz" else 404)
        self.end_headers()
        self.wfile.write(b'{"status": "ok", "servers": 3}')
    def log_message(self, *_):
        pass

class Cloud:
    def __init__(self, settings):
        self.base_url = settings.base_url
        self.where = settings.state_dir / "stopped"
        self.server = ThreadingHTTPServer((settings.host, settings.port), Health)
    def start(self):
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    def stop(self):
        self.server.shutdown()
        self.where.write_text("cleanly")

sys.modules["kilonova.wiring"] = wiring = types.ModuleType("kilonova.wiring")
wiring.all_in_one = Cloud
import kilonova
kilonova.wiring = wiring
from kilonova.cmd.main import script
script()
'''

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}
    return kept | {"HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path / "data"), "PYTHONPATH": os.getcwd()}


@pytest.fixture
def kilonova(environment: dict[str, str], tmp_path: Path) -> Iterator[Run]:
    """Run the command to its end; whatever cloud it left behind is stopped afterwards."""
    places: set[Path] = {tmp_path / "data/kilonova"}

    def run(*arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        if "--state-dir" in arguments:
            places.add(Path(arguments[arguments.index("--state-dir") + 1]))
        return subprocess.run(
            [sys.executable, "-c", _PROGRAM, *arguments],
            env=environment | more, capture_output=True, text=True, timeout=90, check=False,
        )  # fmt: skip

    yield run
    for place in places:
        run("down", "--state-dir", str(place))


@pytest.fixture
def foreground(environment: dict[str, str]) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start the command and leave it running; it is killed afterwards when it still runs."""
    started: list[subprocess.Popen[Any]] = []

    def start(*arguments: str) -> subprocess.Popen[str]:
        started.append(
            subprocess.Popen(
                [sys.executable, "-c", _PROGRAM, *arguments],
                env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            )
        )
        return started[-1]

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()
