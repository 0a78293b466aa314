from __future__ import annotations

import json
import re
import signal
import socket
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

Run = Callable[..., subprocess.CompletedProcess[str]]
Start = Callable[..., "subprocess.Popen[str]"]


def one_sentence(result: subprocess.CompletedProcess[str]) -> str:
    """What a refused command said; fails when it is more or less than one line on standard error."""
    assert (result.returncode, result.stdout) == (1, ""), result.stderr
    assert result.stderr.startswith("kilonova: ")
    assert result.stderr.count("\n") == 1
    return result.stderr


def until_ready(process: subprocess.Popen[str]) -> list[str]:
    assert process.stdout
    lines = []
    for line in process.stdout:
        lines.append(line)
        if line.startswith("ready"):
            return lines
    raise AssertionError("".join(lines) + (process.stderr.read() if process.stderr else ""))


def test_a_detached_cloud_runs_until_it_is_told_to_stop(kilonova: Run, tmp_path: Path) -> None:
    up = kilonova("up", "--port", "0", "--detach")
    assert (up.returncode, up.stderr) == (0, "")
    assert up.stdout.splitlines()[-1].startswith("ready")

    status = kilonova("status", "-f", "json")
    facts = json.loads(status.stdout)
    assert (status.returncode, facts["state"], facts["hosts"], facts["servers"]) == (0, "ready", 4, 3)
    assert facts["url"] in up.stdout

    assert kilonova("down").returncode == 0
    assert (tmp_path / "data/kilonova/stopped").read_text() == "cleanly"
    assert json.loads(kilonova("status", "-f", "json").stdout)["state"] == "stopped"
    assert kilonova("status").returncode == 3
    assert kilonova("down").returncode == 0


def test_the_state_is_in_the_data_directory_and_its_secrets_are_the_owners(kilonova: Run, tmp_path: Path) -> None:
    kilonova("up", "--port", "0", "--detach", "--admin-password", "hunter2")
    place = tmp_path / "data/kilonova"
    for name in ("secrets.json", "clouds.yaml", "openrc"):
        assert stat.S_IMODE((place / name).stat().st_mode) == 0o600, name
    assert json.loads((place / "secrets.json").read_text())["admin_password"] == "hunter2"
    clouds = yaml.safe_load((place / "clouds.yaml").read_text())["clouds"]
    assert clouds.keys() == {"kilonova", "kilonova-admin", "kilonova-system-admin"}
    assert clouds["kilonova-system-admin"]["auth"]["system_scope"] == "all"
    assert clouds["kilonova-admin"]["auth"]["password"] == "hunter2"
    echo = f"unset NO_PROXY; . {place}/openrc && echo $OS_PASSWORD $NO_PROXY"
    read = subprocess.check_output(["sh", "-c", echo], text=True)
    assert read.split() == [clouds["kilonova"]["auth"]["password"], "127.0.0.1"]


def test_the_greeting_has_three_lines_to_paste(kilonova: Run, tmp_path: Path) -> None:
    out = kilonova("up", "--port", "0", "--detach").stdout
    pasted = [line.strip() for line in out.splitlines() if line.startswith("  ")]
    assert len(pasted) == 3
    assert "client" in pasted[0]
    assert str(tmp_path / "data/kilonova/clouds.yaml") in pasted[1]
    assert pasted[2].startswith("openstack server create")
    assert "simulated" in out
    assert "NO_PROXY" not in out


def test_who_listens_on_all_addresses_is_told_what_the_catalogue_says(kilonova: Run) -> None:
    assert "all addresses" not in kilonova("up", "--port", "0", "--detach").stdout
    kilonova("down")
    out = kilonova("up", "--host", "0.0.0.0", "--port", "0", "--detach").stdout
    assert "It listens on all addresses, and its catalogue says 127.0.0.1" in out


def test_behind_a_proxy_the_lines_to_paste_go_past_it(kilonova: Run) -> None:
    behind = {"http_proxy": "http://127.0.0.1:9", "no_proxy": "example.org"}
    out = kilonova("up", "--port", "0", "--detach", **behind).stdout
    assert "NO_PROXY=127.0.0.1,example.org" in out
    assert kilonova("status", **behind).returncode == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_stops_it_cleanly(foreground: Start, tmp_path: Path, number: int) -> None:
    process = foreground("up", "--port", "0")
    until_ready(process)
    process.send_signal(number)
    assert process.wait(60) == 0
    assert (tmp_path / "data/kilonova/stopped").exists()
    assert not (tmp_path / "data/kilonova/process.json").exists()


def test_a_taken_port_is_refused_before_anything_is_made(kilonova: Run, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        for detach in ((), ("--detach",)):
            assert f"Port {port} of 127.0.0.1 is taken" in one_sentence(kilonova("up", "--port", str(port), *detach))
    assert not (tmp_path / "data").exists()


def test_a_state_directory_in_use_is_refused(kilonova: Run) -> None:
    kilonova("up", "--port", "0", "--detach")
    for arguments in ((), ("--fresh",), ("--detach",)):
        said = one_sentence(kilonova("up", "--port", "0", *arguments))
        assert re.search(r"in use by process \d+ at http://127.0.0.1:\d+", said)
    assert kilonova("status").returncode == 0


def test_state_of_a_newer_version_is_refused_and_left_alone(kilonova: Run, tmp_path: Path) -> None:
    tmp_path.joinpath("state.json").write_text('{"format": 999, "program": "9.9"}')
    said = one_sentence(kilonova("up", "--port", "0", "--state-dir", str(tmp_path)))
    assert "written by Kilonova 9.9" in said
    assert {entry.name for entry in tmp_path.iterdir()} == {"state.json", "lock"}


def test_a_directory_that_something_else_made_is_refused_even_when_fresh(kilonova: Run, tmp_path: Path) -> None:
    tmp_path.joinpath("thesis.txt").write_text("years of work")
    said = one_sentence(kilonova("up", "--port", "0", "--state-dir", str(tmp_path), "--fresh"))
    assert "no Kilonova state" in said
    assert {entry.name for entry in tmp_path.iterdir()} == {"thesis.txt"}


def test_a_second_start_keeps_passwords_and_sizes_and_refuses_other_networks(kilonova: Run, tmp_path: Path) -> None:
    place = tmp_path / "data/kilonova"
    kilonova("up", "--port", "0", "--detach", "--hosts", "7", "--private-cidr", "127.100.0.0/16")
    first = (place / "secrets.json").read_text()
    kilonova("down")
    said = one_sentence(kilonova("up", "--port", "0", "--private-cidr", "127.101.0.0/16"))
    assert "was made with --private-cidr 127.100.0.0/16" in said
    assert "7 simulated hypervisors" in kilonova("up", "--port", "0", "--detach").stdout
    assert (place / "secrets.json").read_text() == first


def test_fresh_forgets_everything(kilonova: Run, tmp_path: Path) -> None:
    place = tmp_path / "data/kilonova"
    kilonova("up", "--port", "0", "--detach", "--private-cidr", "127.100.0.0/16")
    first = (place / "secrets.json").read_text()
    kilonova("down")
    (place / "client/bin").mkdir(parents=True)
    up = kilonova("up", "--port", "0", "--detach", "--fresh", "--private-cidr", "127.101.0.0/16")
    assert up.returncode == 0
    assert (place / "client/bin").is_dir(), "the environment that `up` said how to make is no part of the cloud"
    assert not (place / "stopped").exists()
    assert (place / "secrets.json").read_text() != first


def test_a_killed_cloud_is_not_taken_for_a_running_one(foreground: Start, kilonova: Run) -> None:
    process = foreground("up", "--port", "0")
    until_ready(process)
    process.kill()
    process.wait()
    assert kilonova("status").returncode == 3
    assert kilonova("up", "--port", "0", "--detach").returncode == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--config-file", "/nowhere/kilonova.conf"), "no such file"),
        (("--host", "no..host"), "cannot listen"),
        (("--host", "192.0.2.1"), "cannot assign requested address"),
        (("--private-cidr", "127.9.0.0/16", "--public-cidr", "127.9.4.0/24"), "overlap"),
        (("--state-dir", "/proc/kilonova"), "state directory /proc/kilonova cannot be used"),
        (("--state-dir", "/etc/hostname"), "cannot be used"),
    ],
)
def test_what_cannot_work_is_said_in_one_sentence(kilonova: Run, arguments: tuple[str, ...], said: str) -> None:
    assert said in one_sentence(kilonova("up", "--port", "0", *arguments))


@pytest.mark.parametrize(
    "arguments",
    [
        ("--port", "65536"), ("--port", "-1"), ("--port", "http"), ("--hosts", "0"), ("--hosts", "-5"),
        ("--private-cidr", "10.0.0.1/8"), ("--private-cidr", "fd00::/64"), ("--public-cidr", "10.0.0.0/31"),
        ("--admin-password", ""), ("--no-such-option",),
    ],
)  # fmt: skip
def test_wrong_usage_makes_nothing(kilonova: Run, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    result = kilonova("up", *arguments)
    assert (result.returncode, result.stdout) == (2, "")
    assert not (tmp_path / "data").exists()
