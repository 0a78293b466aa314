"""`kilonova placement ACTION`: options, exit codes and what is printed. A story in tests/scenario has a cloud."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import sqlalchemy as sa

from kilonova.cmd import main, placement
from kilonova.cmd.placement_audit import Report
from kilonova.core import ids
from kilonova.placement.store import schema
from kilonova.placement.store.operate.books import Finding
from kilonova.sql.engine import Database
from tests.unit.placement.store.conftest import Store
from tests.unit.placement.store.operate.there import There


@dataclass
class Site:
    """A configuration of Placement and what its commands print."""

    path: Path
    capsys: pytest.CaptureFixture[str]
    err: str = ""

    @property
    def url(self) -> str:
        return f"sqlite:///{self.path}/placement.db"

    def run(self, *words: str, code: int = 0) -> str:
        """What a command prints; it must end with the exit code."""
        ended = main.main(["placement", "--config-file", str(self.path / "placement.conf"), *words])
        out, self.err = self.capsys.readouterr()
        assert ended == code, out + self.err
        return out

    def rows(self, *words: str, code: int = 0) -> list[dict[str, str]]:
        """The same as JSON."""
        found: list[dict[str, str]] = json.loads(self.run(*words, "-f", "json", code=code))
        return found


@pytest.fixture
def site(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Site:
    """Without tables and without credentials."""
    for name in [name for name in os.environ if name.startswith("OS_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    made = Site(tmp_path, capsys)
    (tmp_path / "placement.conf").write_text(f"[placement_database]\nconnection = {made.url}\n")
    return made


@pytest.fixture
def store(site: Site) -> Iterator[Store]:
    """Its database, with tables."""
    site.run("db", "sync")
    database = Database(site.url)
    yield Store.of(database)
    database.dispose()


def drift(store: Store) -> None:
    """Make the books wrong."""
    host = store.provider("host", VCPU=8)
    store.claim(ids.new_uuid(), {host: {"VCPU": 3}})
    with store.database.write() as connection:
        connection.execute(sa.update(schema.inventories).values(used=5))


def test_without_an_action_it_is_the_service_with_its_options(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, int]] = []

    def run(name: str, arguments: object, _build: object) -> int:
        asked.append((name, arguments.port))  # type: ignore[attr-defined]
        return 0

    monkeypatch.setattr(placement.process, "run", run)
    assert main.main(["placement", "--port", "9", "--host", "127.0.0.2", "--config-file", "x"]) == 0
    assert main.main(["placement"]) == 0
    assert asked == [("placement", 9), ("placement", 8778)]


def test_db_sync_makes_the_tables_of_placement_alone_and_may_be_repeated(site: Site) -> None:
    assert "made at revision" in site.run("db", "sync")
    assert "already" in site.run("db", "sync")
    (row,) = site.rows("db", "version")
    assert (row["database"], row["state"]) == ("placement", "up to date")
    assert sorted(path.name for path in site.path.glob("*.db")) == ["placement.db"]


def test_options_may_stand_before_and_after_the_action(site: Site) -> None:
    file = str(site.path / "placement.conf")
    assert main.main(["placement", "db", "sync", "--config-file", file]) == 0
    assert main.main(["placement", "status", "--config-file", file, "--wait", "1"]) == 0


def test_status_answers_with_the_worst_result(site: Site) -> None:
    assert [row["result"] for row in site.rows("status", code=2)] == ["Success", "Failure"]
    site.run("db", "sync")
    assert {row["result"] for row in site.rows("status")} == {"Success"}
    with (database := Database(site.url)).write() as connection:
        connection.execute(sa.delete(schema.traits))
    database.dispose()
    assert [row["check"] for row in site.rows("status", code=1) if row["result"] == "Warning"] == ["Standard names"]


@pytest.mark.parametrize("action", ["audit", "heal", "import"])
def test_what_could_not_be_done_ends_with_2_and_says_why(site: Site, action: str) -> None:
    words = ("--from", f"sqlite:///{site.path}/there.db") if action == "import" else ()
    site.run(action, *words, code=2)
    assert "has no tables yet: run `kilonova db sync`" in site.err


def test_audit_reads_and_heal_repairs(site: Site, store: Store) -> None:
    assert site.rows("audit", "--only-database") == []
    assert "All is well." in site.err
    drift(store)
    (found,) = site.rows("audit", "--only-database", code=1)
    assert found == {
        "check": "used", "result": "Wrong", "subject": found["subject"],
        "found": "used is 5, the allocations are 3", "done": "",
    }  # fmt: skip
    (would,) = site.rows("heal", "--dry-run", "--only-database", code=1)
    assert would["done"] == "would be repaired"
    (done,) = site.rows("heal", "--only-database")
    assert done["done"] == "repaired"
    assert site.rows("audit", "--fix", "--only-database") == []


def test_what_cannot_be_repaired_is_left_and_ends_with_1(site: Site, store: Store) -> None:
    one = store.provider("one")
    store.provider("two", one)
    with store.database.write() as connection:
        two = sa.select(schema.resource_providers.c.id).where(schema.resource_providers.c.name == "two")
        id_ = connection.execute(two).scalar_one()
        one_row = schema.resource_providers.c.name == "one"
        connection.execute(sa.update(schema.resource_providers).where(one_row).values(parent_id=id_))
    rows = site.rows("heal", "--only-database", code=1)
    assert {row["done"] for row in rows} == {"left: it has to be changed through the API"}
    assert {row["done"] for row in site.rows("heal", "--dry-run", "--only-database", code=1)} == {""}


def test_a_warning_alone_is_well(capsys: pytest.CaptureFixture[str]) -> None:
    report = Report(fix=True, dry_run=False)
    report.add(Finding("over-capacity", "VCPU of host", "used is 3 of 2", warning=True), lambda: "never asked")
    assert report.show("json") == 0
    assert json.loads(capsys.readouterr().out)[0]["result"] == "Warning"


def test_without_credentials_or_an_identity_service_only_the_database_is_audited_and_that_is_said(
    site: Site, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.run("audit")
    assert "Servers were not compared: there are no credentials" in site.err
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    who = {"OS_AUTH_URL": f"http://127.0.0.1:{port}", "OS_USERNAME": "a", "OS_PASSWORD": "b", "OS_PROJECT_NAME": "c"}
    for name, value in who.items():
        monkeypatch.setenv(name, value)
    site.run("audit")
    assert "Servers were not compared: The identity service does not answer" in site.err
    for name in who:
        monkeypatch.delenv(name)
    section = f"[keystone_authtoken]\nauth_type = password\nauth_url = http://127.0.0.1:{port}\nusername = placement\n"
    with (site.path / "placement.conf").open("a") as file:
        file.write(section)
    site.run("audit")
    assert "Servers were not compared: The identity service does not answer" in site.err
    drift(store)
    assert [row["done"] for row in site.rows("heal")] == ["repaired"]


def test_credentials_that_cannot_be_used_are_an_error(site: Site, store: Store) -> None:
    site.run("audit", "--os-cloud", "nowhere", code=2)
    assert "There is no cloud nowhere" in site.err


def test_a_state_directory_without_a_cloud_is_refused_and_left(site: Site) -> None:
    site.run("status", "--state-dir", str(site.path / "nothing"), code=2)
    assert "run `kilonova up` there first" in site.err
    assert not (site.path / "nothing").exists()


def test_import_shows_both_sides_and_what_was_done(site: Site, store: Store) -> None:
    there = There(site.path / "there.db")
    host = there.provider("host", VCPU=8)
    there.claim({host: {"VCPU": 2}})
    site.run("import", "--from", there.url, "--dry-run")
    assert "Would be done: 1 allocations made, " in site.err
    assert store.keeper.current().snapshot.row_of_uuid == {}
    rows = {row["what"]: row for row in site.rows("import", "--from", there.url)}
    assert rows["allocations"] == {"what": "allocations", "source": 1, "here": 1, "difference": 0}
    assert rows["VCPU allocated"]["here"] == 2
    assert "allocations: 1 of 1" in site.err
    file = site.path / "theirs.conf"
    file.write_text(f"[placement_database]\nconnection = {there.url}\n")
    assert "| VCPU total" in site.run("import", "--from-config", str(file))
    assert "Done: nothing to do. Both sides are equal." in site.err
    store.provider("mine")
    site.run("import", "--from", there.url, code=2)
    assert "--merge" in site.err
    site.run("import", "--from", there.url, "--merge")
    there.dispose()


def test_a_configuration_that_names_no_source_is_said(site: Site, store: Store) -> None:
    (site.path / "theirs.conf").write_text("[DEFAULT]\n")
    site.run("import", "--from-config", str(site.path / "theirs.conf"), code=2)
    assert "has no connection in [placement_database]" in site.err
