"""What servers hold goes wrong behind the cloud's back, and `kilonova placement` finds it and puts it right."""

from __future__ import annotations

import json
import os
import socket
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kilonova.cmd import nova_manage
from kilonova.cmd.client_files import write_client_files
from kilonova.cmd.main import main
from kilonova.core import ids
from tests.scenario.stage import PLACEMENT, SECRETS, Stage, boot, delete, serving, stage

QUICK = ("--age", "0", "--pause", "0.05")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    """A cloud that listens, with its clouds.yaml."""
    for name in [name for name in os.environ if name.startswith("OS_") or "proxy" in name.lower()]:
        monkeypatch.delenv(name)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with stage(tmp_path / "state", port=port) as made:
        server = serving(made.cloud, threads=4)
        server.start()
        write_client_files(made.directory, made.cloud.base_url, SECRETS)
        yield made
        server.stop()


class Command:
    """`kilonova placement` on the cloud's state directory."""

    def __init__(self, here: Stage, capsys: pytest.CaptureFixture[str]) -> None:
        self._here, self._capsys = here, capsys
        self.err = ""

    def __call__(self, action: str, *words: str, code: int) -> Any:
        """The rows of its table; it must end with the exit code."""
        self._capsys.readouterr()
        ended = main(["placement", action, "--state-dir", str(self._here.directory), "-f", "json", *words])
        out, self.err = self._capsys.readouterr()
        assert ended == code, out + self.err
        return json.loads(out)


@pytest.fixture
def command(here: Stage, capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(here, capsys)


def put(here: Stage, consumer: str, allocations: dict[str, Any], generation: int | None) -> None:
    """Write what a consumer holds, past the compute service."""
    body = {
        "allocations": allocations, "consumer_generation": generation, "consumer_type": "INSTANCE",
        "project_id": here.demo.project, "user_id": here.demo.user,
    }  # fmt: skip
    here.admin.ok("PUT", f"/allocations/{consumer}", body, service=PLACEMENT, status=204,
                  OpenStack_API_Version="placement 1.38")  # fmt: skip


def test_allocations_taken_away_and_orphans_are_found_and_healed(here: Stage, command: Command) -> None:
    demo = here.demo.at("2.96")
    bare, well = boot(demo, name="bare"), boot(demo, name="well")
    assert command("audit", *QUICK, code=0) == []
    assert "Consumers were compared with 2 servers." in command.err
    held = here.allocations(bare["id"])
    put(here, bare["id"], {}, 1)
    orphan, (host, *_) = ids.new_uuid(), held
    put(here, orphan, {host: {"resources": {"VCPU": 1}}}, None)
    drift = "UPDATE inventories SET used = used + 7 WHERE class_id = (SELECT id FROM resource_classes WHERE name = ?)"
    with sqlite3.connect(here.directory / "databases/placement.db") as connection:
        connection.execute(drift, ("MEMORY_MB",))
    rows = command("audit", *QUICK, code=1)
    assert {row["check"] for row in rows} == {"used", "orphan", "missing"}
    assert {row["subject"] for row in rows if row["check"] != "used"} == {
        f"consumer {orphan}", f"server {bare['id']}",
    }  # fmt: skip
    assert command("audit", code=1) == [row for row in rows if row["check"] == "used"]  # the others are too young
    would = command("heal", "--dry-run", *QUICK, code=1)
    assert {row["done"] for row in would} == {"would be repaired"}
    assert here.allocations(orphan)
    healed = command("heal", *QUICK, code=0)
    assert {row["done"] for row in healed} == {"repaired"}
    assert here.allocations(orphan) == {}
    resources = {uuid: row["resources"] for uuid, row in held.items()}
    assert {uuid: row["resources"] for uuid, row in here.allocations(bare["id"]).items()} == resources
    assert command("audit", *QUICK, code=0) == []
    delete(demo, bare["id"], well["id"])
    assert here.used() == {}  # the service has seen what the command wrote
    assert command("audit", "--fix", *QUICK, code=0) == []


def test_nova_manage_heals_and_audits_with_novas_exit_codes(
    here: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    def manage(*words: str) -> int:
        where = ("--state-dir", str(here.directory), *QUICK)
        return nova_manage.run(["placement", *words, *where])

    bare = boot(here.demo.at("2.96"), name="bare")
    held, orphan = here.allocations(bare["id"]), ids.new_uuid()
    assert (manage("audit"), manage("heal_allocations")) == (0, 4)
    put(here, bare["id"], {}, 1)
    put(here, orphan, {next(iter(held)): {"resources": {"VCPU": 1}}}, None)
    assert manage("audit", "--verbose") == 3
    assert manage("heal_allocations", "--instance", ids.new_uuid()) == 4
    assert manage("heal_allocations", "--dry-run") == 0
    assert here.allocations(bare["id"]) == {}
    assert manage("heal_allocations", "--max-count", "1", "--verbose") == 0
    assert here.allocations(bare["id"])
    assert here.allocations(orphan), "it is not what was asked for"
    assert manage("audit", "--delete") == 4
    assert here.allocations(orphan) == {}
    assert manage("audit") == 0
    capsys.readouterr()


def test_nova_manage_puts_hosts_back_where_their_aggregates_are(
    here: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    def sync(*words: str) -> tuple[int, str]:
        capsys.readouterr()
        code = nova_manage.run(["placement", "sync_aggregates", "--state-dir", str(here.directory), *words])
        return code, capsys.readouterr().out

    made = here.admin.at("2.96").ok("POST", "/os-aggregates", {"aggregate": {"name": "a"}}, status=200)["aggregate"]
    body = {"add_host": {"host": "sim-0001"}}
    here.admin.ok("POST", f"/os-aggregates/{made['id']}/action", body, status=200)
    (node,) = here.admin.at("2.96").get("/os-hypervisors?hypervisor_hostname_pattern=sim-0001")["hypervisors"]
    path, version = f"/resource_providers/{node['id']}/aggregates", {"OpenStack_API_Version": "placement 1.19"}
    known = here.admin.ok("GET", path, service=PLACEMENT, status=200, **version)
    assert known["aggregates"] == [made["uuid"]]
    assert sync() == (0, "")
    body = {"aggregates": [], "resource_provider_generation": known["resource_provider_generation"]}
    here.admin.ok("PUT", path, body, service=PLACEMENT, status=200, **version)
    assert sync("--dry-run") == (0, "Would put sim-0001 in aggregate a.\n")
    assert sync("--verbose") == (0, "Put sim-0001 in aggregate a.\n")
    assert here.admin.ok("GET", path, service=PLACEMENT, status=200, **version)["aggregates"] == [made["uuid"]]


def test_who_may_not_list_all_servers_is_told_and_changes_nothing(
    here: Stage, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert command("audit", "--os-cloud", "kilonova", code=2) == []
    assert "does not allow this" in command.err
    clouds = here.directory / "clouds.yaml"
    clouds.write_text(clouds.read_text().replace("password: opensesame", "password: wrong"))
    command("audit", code=2)
    assert "identity service does not answer" in command.err
