"""`kilonova metadata` as a process: ready, answering, and ending when it is told to."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kilonova.db.prepare import prepare_api
from kilonova.http.transport import SocketTransport
from kilonova.sql.engine import Database


def test_it_serves_what_needs_no_server_and_warns_of_an_empty_secret(tmp_path: Path) -> None:
    pytest.importorskip("oslo_messaging")
    api = Database(f"sqlite:///{tmp_path}/api.db")
    prepare_api(api)
    api.dispose()
    config = tmp_path / "kilonova.conf"
    config.write_text(
        "[DEFAULT]\ntransport_url = rabbit://nobody:x@127.0.0.1:1/\n[neutron]\nservice_metadata_proxy = true\n"
        f"[api_database]\nconnection = sqlite:///{tmp_path}/api.db\n"
        "[keystone_authtoken]\nauth_type = password\nauth_url = http://127.0.0.1:1\nusername = x\npassword = x\n"
    )
    command = [sys.executable, "-m", "kilonova.cmd.main", "metadata", "--port", "0", "--config-file", str(config)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            port = _port(process.pid)
            send = SocketTransport(timeout=10).send
            assert line.startswith("ready: kilonova metadata")
            assert send("GET", f"http://127.0.0.1:{port}/", {}, None)[2].startswith(b"1.0\n")
            assert send("GET", f"http://127.0.0.1:{port}/latest/meta-data/", {}, None)[0] == 400
        finally:
            os.kill(process.pid, signal.SIGTERM)
            _, said = process.communicate(timeout=90)
    assert process.returncode == 0
    assert "metadata_proxy_shared_secret is empty" in said


def _port(pid: int) -> int:
    """The port on which a process listens (proc(5))."""
    own = {os.readlink(link) for link in Path(f"/proc/{pid}/fd").iterdir()}
    for row in Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]:
        columns = row.split()
        if columns[3] == "0A" and f"socket:[{columns[9]}]" in own:
            return int(columns[1].partition(":")[2], 16)
    raise AssertionError("it does not listen")
