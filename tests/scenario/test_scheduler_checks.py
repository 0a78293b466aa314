"""The operator's checks of a decision (docs/operate/scheduler-checks.sh) against a cloud of `kilonova up`."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kilonova.core import ids
from tests.deploy import peers
from tests.scenario.test_command import NETWORKS, Command, call, login

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "docs/operate/scheduler-checks.sh"
CONFIG = """
[DEFAULT]
debug = True
[filter_scheduler]
enabled_filters = ComputeFilter,ImagePropertiesFilter,SameHostFilter
"""


def client() -> Path:
    """Where the openstack command is. Skips where it is not installed."""
    own = (ROOT / ".venv-client/bin/openstack", peers.ENVIRONMENT / "bin/openstack")
    found = next((str(path) for path in own if path.exists()), None) or shutil.which("openstack")
    if found is None:
        pytest.skip("the openstack command is not installed: make client, or make peers")
    return Path(found).parent


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Command]:
    client()
    directory = tmp_path_factory.mktemp("checks")
    config = directory / "kilonova.conf"
    config.write_text(CONFIG)
    made = Command(directory / "state")
    try:
        lines = made.up("--hosts", "2", "--config-file", str(config), *NETWORKS)
        assert lines[-1].startswith("ready"), made.said()
        yield made
    finally:
        made.close()


def created(cloud: Command, **hints: Any) -> dict[str, Any]:
    """A server of the administrator's, when nothing is done to it any more."""
    token, endpoints = login(cloud.cloud("kilonova-admin"))
    compute = endpoints["compute"]
    flavors = call(f"{compute}/flavors", token=token)[1]["flavors"]
    images = call(f"{endpoints['image']}/v2/images", token=token)[1]["images"]
    body = {
        "server": {"name": "checked", "flavorRef": flavors[0]["id"], "imageRef": images[0]["id"]},
        "os:scheduler_hints": hints,
    }
    server = call(f"{compute}/servers", body, token=token)[1]["server"]
    for _ in range(600):
        shown = call(f"{compute}/servers/{server['id']}", token=token)[1]["server"]
        if shown["status"] != "BUILD":
            return dict(shown)
        time.sleep(0.1)
    raise AssertionError("the server is being built for ever")


def checked(cloud: Command, server: str) -> tuple[int, str]:
    """Exit code and output of the script."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("OS_")}
    environment |= {
        "STATE_DIR": str(cloud.state_dir), "PYTHONPATH": str(ROOT),
        "PATH": f"{Path(sys.executable).parent}:{client()}:{os.environ['PATH']}",
    }  # fmt: skip
    done = subprocess.run(
        ["sh", str(SCRIPT), server], capture_output=True, text=True, env=environment, timeout=300, cwd=cloud.state_dir
    )
    return done.returncode, done.stdout + done.stderr


def test_of_a_server_that_runs_every_stage_is_found(cloud: Command) -> None:
    server = created(cloud)
    assert server["status"] == "ACTIVE", server
    host = server["OS-EXT-SRV-ATTR:host"]
    code, text = checked(cloud, server["id"])
    assert code == 0, text
    for words in (
        '"vcpus":1', "nova-scheduler", "Starting to schedule for instances",
        "compute_status_filter added forbidden trait COMPUTE_STATUS_DISABLED", "it never said: Got no allocation",
        "| resource_class | usage |", "Filter ComputeFilter returned 2 hosts [", "Weighed [WeighedHost [host:",
        f"winner {host}", "'VCPU': 1", "All is well.", "host-in-no-aggregate",
    ):  # fmt: skip
        assert words in text, f"{words} is not in:\n{text}"


def test_of_a_server_without_a_host_the_culprit_names_itself(cloud: Command) -> None:
    server = created(cloud, same_host=ids.new_uuid())
    assert server["status"] == "ERROR"
    code, text = checked(cloud, server["id"])
    assert code == 0, text
    for words in (
        "Failed to schedule instances", f"[instance: {server['id']}] Filter SameHostFilter returned 0 hosts",
        "Filtering removed all hosts for the request", "nothing was weighed", "SameHostFilter: 2 → 0",
    ):  # fmt: skip
        assert words in text, f"{words} is not in:\n{text}"


def test_a_server_that_is_not_there_is_bad_usage(cloud: Command) -> None:
    code, text = checked(cloud, ids.new_uuid())
    assert code == 2
    assert "There is no server" in text
