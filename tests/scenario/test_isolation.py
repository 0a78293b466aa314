"""Isolation of projects over a whole cloud: what the identity service says of a project decides where it may go."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kilonova.cmd.client_files import write_client_files
from kilonova.cmd.main import main
from tests.scenario.stage import PLACEMENT, SECRETS, Stage, becomes, create, serving, stage

CONFIG = """
[DEFAULT]
restrict_zones = True
[filter_scheduler]
enabled_filters = ComputeFilter,RestrictedZoneFilter,ProjectTagsFilter
[scheduler]
enable_isolated_aggregate_filtering = True
"""


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """A cloud that listens, with its clouds.yaml: host sim-0001 in zone east, sim-0002 in west, sim-0003 in none."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with stage(tmp_path_factory.mktemp("isolation") / "state", hosts=3, port=port, config=CONFIG) as made:
        for zone, host in (("east", "sim-0001"), ("west", "sim-0002")):
            aggregate(made, zone, host, availability_zone=zone)
        server = serving(made.cloud, threads=4)
        server.start()
        write_client_files(made.directory, made.cloud.base_url, SECRETS)
        yield made
        server.stop()


def aggregate(here: Stage, name: str, host: str, **metadata: str) -> None:
    """An aggregate with one host."""
    made = here.admin.ok("POST", "/os-aggregates", {"aggregate": {"name": name}}, status=200)["aggregate"]["id"]
    path = f"/os-aggregates/{made}/action"
    here.admin.ok("POST", path, {"set_metadata": {"metadata": metadata}}, status=200)
    here.admin.ok("POST", path, {"add_host": {"host": host}}, status=200)


def project(here: Stage, **attributes: Any) -> None:
    """Set attributes of the project demo, before anybody has asked about it."""
    path = f"/projects/{here.demo.project}"
    here.admin.ok("PATCH", path, {"project": attributes}, service="/identity/v3", status=200)


def test_a_restricted_project_lands_in_its_zones_and_is_offered_no_others(here: Stage) -> None:
    project(here, compute_zones="west")
    server = create(here.demo)
    becomes(here.demo, server, "ACTIVE")
    assert here.admin.get(f"/servers/{server}")["server"]["OS-EXT-SRV-ATTR:host"] == "sim-0002"
    zones = {row["zoneName"]: row["zoneState"]["available"]
             for row in here.demo.get("/os-availability-zone")["availabilityZoneInfo"]}  # fmt: skip
    assert zones == {"east": False, "nova": False, "west": True}
    body = {"server": {"name": "s", "flavorRef": "42", "availability_zone": "east", "networks": []}}
    assert here.demo.status("POST", "/servers", body) == 400
    assert {row["zoneName"]: row["zoneState"]["available"]
            for row in here.admin.get("/os-availability-zone")["availabilityZoneInfo"]} == dict.fromkeys(
                ("east", "nova", "west"), True)  # fmt: skip


def audit(here: Stage, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, list[dict[str, str]]]:
    """Exit code and findings of `kilonova aggregates audit`."""
    capsys.readouterr()
    file = here.directory / "kilonova.conf"
    where = ("--config-file", str(file), "--state-dir", str(here.directory))
    code = main(("aggregates", "audit", *where, "-f", "json", *words))
    out, err = capsys.readouterr()
    assert err == ""
    return code, json.loads(out)


def test_the_audit_finds_what_is_wrong_with_the_aggregates_and_ends_so(
    here: Stage, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in os.environ if name.startswith("OS_") or "proxy" in name.lower()]:
        monkeypatch.delenv(name)
    alone = {"kind": "host-in-no-aggregate", "subject": "sim-0003"}
    code, found = audit(here, capsys)
    assert (code, [{key: row[key] for key in alone} for row in found]) == (1, [alone])
    assert audit(here, capsys, "--ignore", "host-in-no-aggregate") == (0, [])
    here.admin.ok("PUT", "/traits/CUSTOM_GOLD", service=PLACEMENT, status=201, OpenStack_API_Version="placement 1.6")
    aggregate(here, "gold", "sim-0003", **{"trait:CUSTOM_GOLD": "required", "colour": "red"})
    code, found = audit(here, capsys)
    assert code == 1
    assert [(row["kind"], row["subject"]) for row in found] == [("dead-property", "gold"), ("one-way-lock", "gold")]
    assert "hosts sim-0003 take nobody: they lack the trait CUSTOM_GOLD" in found[1]["found"]


def test_an_audit_that_cannot_ask_ends_with_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in os.environ if name.startswith("OS_")]:
        monkeypatch.delenv(name)
    (tmp_path / "kilonova.conf").write_text("[DEFAULT]\n")
    assert main(["aggregates", "audit", "--config-file", str(tmp_path / "kilonova.conf")]) == 2
    assert "could not be looked at: there are no credentials" in capsys.readouterr().err
