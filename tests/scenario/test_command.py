"""The real command with the real cloud: what a person or a script meets between `kilonova up` and `kilonova down`."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

NETWORKS = ("--private-cidr", "127.100.0.0/16", "--public-cidr", "127.101.0.0/24")


class Command:
    """`kilonova` on one state directory."""

    def __init__(self, state_dir: Path) -> None:
        self.state_dir = state_dir
        self._log = (state_dir.parent / "standard-error").open("w+")
        self._running: subprocess.Popen[str] | None = None

    def up(self, *more: str) -> list[str]:
        """Start it in the foreground; the lines until `ready`, or all lines when it ends."""
        command = [sys.executable, "-m", "kilonova.cmd.main", "up", "--state-dir", str(self.state_dir), "--port", "0"]
        self._running = subprocess.Popen([*command, *more], stdout=subprocess.PIPE, stderr=self._log, text=True)
        assert self._running.stdout
        lines = []
        for line in self._running.stdout:
            lines.append(line.rstrip("\n"))
            if line.startswith("ready"):
                break
        return lines

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Send a signal; the exit code."""
        assert self._running
        self._running.send_signal(number)
        return self.ended()

    def ended(self) -> int:
        """Wait for its end; the exit code."""
        assert self._running
        return self._running.wait(60)

    def said(self) -> str:
        """What came on standard error so far."""
        self._log.seek(0)
        return self._log.read()

    def close(self) -> None:
        """Kill what still runs."""
        if self._running and self._running.poll() is None:
            self._running.kill()
            self._running.wait()
        if self._running and self._running.stdout:
            self._running.stdout.close()
        self._log.close()

    def cloud(self, name: str) -> dict[str, Any]:
        """A cloud of clouds.yaml."""
        clouds: dict[str, dict[str, Any]] = yaml.safe_load((self.state_dir / "clouds.yaml").read_text())["clouds"]
        return clouds[name]


@pytest.fixture
def command(tmp_path: Path) -> Iterator[Command]:
    made = Command(tmp_path / "state")
    yield made
    made.close()


def call(url: str, body: object = None, token: str = "") -> tuple[dict[str, str], Any]:
    """A request past every proxy: the answer's headers and document."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json", "X-Auth-Token": token})
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=10) as answer:
        return dict(answer.headers), json.loads(answer.read() or b"null")


def login(cloud: dict[str, Any]) -> tuple[str, dict[str, str]]:
    """A token for a cloud of clouds.yaml, and the public endpoints by type of service."""
    auth = cloud["auth"]
    user = {"name": auth["username"], "password": auth["password"], "domain": {"id": auth["user_domain_id"]}}
    scope = {"project": {"name": auth["project_name"], "domain": {"id": auth["project_domain_id"]}}}
    if "system_scope" in auth:
        scope = {"system": {"all": True}}
    wanted = {"auth": {"identity": {"methods": ["password"], "password": {"user": user}}, "scope": scope}}
    headers, document = call(f"{auth['auth_url']}/v3/auth/tokens", wanted)
    services = document["token"]["catalog"]
    public = {
        service["type"]: endpoint["url"]
        for service in services
        for endpoint in service["endpoints"]
        if endpoint["interface"] == "public"
    }
    return headers["X-Subject-Token"], public


def scoped(cloud: dict[str, Any]) -> dict[str, Any]:
    """The same, without keys that only project scope has."""
    return {**cloud, "auth": {"project_name": "", "project_domain_id": "", **cloud["auth"]}}


def test_from_nothing_to_a_cloud_that_each_client_file_opens_and_back(command: Command) -> None:
    lines = command.up("--hosts", "2", *NETWORKS)
    assert lines[-1].startswith("ready"), command.said()
    url = json.loads((command.state_dir / "process.json").read_text())["url"]
    assert call(f"{url}/healthz")[1]["status"] == "ok"
    for name in ("kilonova", "kilonova-admin", "kilonova-system-admin"):
        token, endpoints = login(scoped(command.cloud(name)))
        assert token
        assert endpoints.keys() >= {"identity", "compute", "placement", "image", "network", "volumev3", "block-storage"}
    token, endpoints = login(command.cloud("kilonova-admin"))
    assert len(call(f"{endpoints['placement']}/resource_providers", token=token)[1]["resource_providers"]) == 2
    images = {image["name"] for image in call(f"{endpoints['image']}/v2/images", token=token)[1]["images"]}
    assert "cirros-0.6.3-x86_64-disk" in images
    assert command.stop() == 0
    assert command.said() == ""


def test_a_restart_on_another_port_finds_the_same_cloud_and_says_where_it_is_now(command: Command) -> None:
    command.up("--hosts", "1", *NETWORKS)
    token, before = login(command.cloud("kilonova"))
    networks = call(f"{before['network']}/v2.0/networks", token=token)[1]
    assert command.stop(signal.SIGINT) == 0
    command.up()
    token, after = login(command.cloud("kilonova"))
    assert call(f"{after['network']}/v2.0/networks", token=token)[1] == networks
    assert after.keys() == before.keys()
    assert after != before


def test_killed_without_warning_it_comes_up_again(command: Command) -> None:
    command.up("--hosts", "1", *NETWORKS)
    assert command.stop(signal.SIGKILL) == -signal.SIGKILL
    assert command.up()[-1].startswith("ready"), command.said()


def test_a_database_of_a_newer_version_is_refused_in_one_sentence(command: Command) -> None:
    command.up("--hosts", "1", *NETWORKS)
    command.stop()
    with sqlite3.connect(command.state_dir / "databases/cell1.db") as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.close()
    assert command.up() == []
    assert command.ended() == 1
    assert command.said().count("\n") == 1
    assert "newer version" in command.said()


def test_a_broken_configuration_file_is_refused_in_one_sentence(command: Command, tmp_path: Path) -> None:
    (tmp_path / "kilonova.conf").write_text("[api]\nmax_limit = many\n")
    assert command.up("--config-file", str(tmp_path / "kilonova.conf"), *NETWORKS) == []
    assert command.ended() == 1
    assert command.said().count("\n") == 1
    assert "max_limit" in command.said()
