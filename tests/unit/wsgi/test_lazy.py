"""Applications for other servers: nothing is opened by the import, and each process has its own."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from kilonova.core.errors import Unavailable
from kilonova.db.prepare import prepare_api
from kilonova.http.transport import WsgiTransport
from kilonova.placement.store.prepare import prepare
from kilonova.sql.engine import Database
from kilonova.wiring.placement import placement_app
from kilonova.wsgi.lazy import VARIABLE, Lazy


@pytest.fixture(autouse=True)
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "kilonova.conf"
    path.write_text(
        f"[placement_database]\nconnection = sqlite:///{tmp_path}/placement.db\n"
        "[keystone_authtoken]\nauth_type = password\nauth_url = http://127.0.0.1:1\nusername = x\npassword = x\n"
    )
    monkeypatch.setenv(VARIABLE, str(path))
    monkeypatch.setattr("kilonova.core.log.setup", lambda *_: None)
    return path


class Built:
    """Counts; what is an exception in `fails` is raised first."""

    def __init__(self, *fails: Exception) -> None:
        self.fails, self.count = list(fails), 0

    def __call__(self, conf: Any) -> Any:
        if self.fails:
            raise self.fails.pop(0)
        self.count += 1
        number = str(self.count).encode()

        def app(environ: dict[str, Any], start_response: Any) -> Any:
            start_response("200 OK", [("Content-Length", "1")])
            return [number]

        return app


def ask(app: Any, path: str = "/") -> tuple[int, bytes]:
    status, _, body = WsgiTransport(app).send("GET", f"http://h{path}", {}, None)
    return status, body


def test_it_is_built_once_however_many_ask_first() -> None:
    build = Built()
    app = Lazy("x", build)
    threads = [threading.Thread(target=ask, args=(app,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert build.count == 1


def test_what_is_not_there_is_503_and_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    app = Lazy("x", Built(Unavailable("The tables are older."), RuntimeError("a defect")))
    assert [ask(app)[0] for _ in range(3)] == [503, 503, 200]
    assert "The tables are older." in caplog.text


def test_a_configuration_file_that_is_not_there_is_503_and_in_the_log(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(VARIABLE, "/nowhere/kilonova.conf")
    status, body = ask(Lazy("x", Built()))
    assert status == 503
    assert b"nowhere" not in body
    assert "/nowhere/kilonova.conf" in caplog.text


def test_another_process_builds_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    app = Lazy("x", Built())
    assert ask(app) == (200, b"1")
    pid = os.getpid()
    monkeypatch.setattr("kilonova.wsgi.lazy.os.getpid", lambda: pid + 1)
    assert ask(app) == (200, b"2")


@pytest.mark.parametrize("name", ["compute", "placement", "metadata"])
def test_importing_an_entry_point_opens_nothing(name: str, tmp_path: Path) -> None:
    application = importlib.import_module(f"kilonova.wsgi.{name}").application
    assert application._built is None
    assert list(tmp_path.glob("*.db")) == []


def test_placement_is_served_as_configured(tmp_path: Path) -> None:
    app = Lazy("placement", placement_app, application="placement")
    room = Database(f"sqlite:///{tmp_path}/placement.db")
    prepare(room)
    room.dispose()
    assert ask(app)[0] == 200
    assert ask(app, "/healthz") == (200, b'{"status":"ok"}')
    assert ask(app, "/resource_providers")[0] in (401, 503)


WORKER = """
import threading
from concurrent.futures import ThreadPoolExecutor
from kilonova.http.transport import WsgiTransport
from kilonova.wsgi.{name} import application
assert threading.active_count() == 1
ask = WsgiTransport(application).send
print(ThreadPoolExecutor(1).submit(ask, "GET", "http://h/healthz", {{}}, None).result()[0])
"""


@pytest.mark.parametrize("name", ["compute", "metadata"])
def test_a_worker_whose_threads_serve_ends_when_it_is_told_to(name: str, config: Path, tmp_path: Path) -> None:
    pytest.importorskip("oslo_messaging")
    database = f"sqlite:///{tmp_path}/api.db"
    config.write_text(
        config.read_text() + f"[api_database]\nconnection = {database}\n"
        "[DEFAULT]\ntransport_url = rabbit://nobody:x@127.0.0.1:1/\n"
    )
    api = Database(database)
    prepare_api(api)
    api.dispose()
    command = [sys.executable, "-c", WORKER.format(name=name)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env={**os.environ, "PYTHONPATH": "."})
    assert done.stdout == "200\n", done.stderr
