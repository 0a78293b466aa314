"""`kilonova db`, `kilonova cell` and `nova-manage`: what they do, what they print, their exit codes.

On SQLite always; on servers that KILONOVA_TEST_POSTGRESQL and KILONOVA_TEST_MARIADB name, with databases of their own.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from kilonova.cmd import nova_manage
from kilonova.cmd.main import main
from kilonova.core import ids
from kilonova.db.api_schema import host_mappings, instance_mappings
from kilonova.db.cell_schema import instances
from kilonova.db.queries import hosts
from kilonova.sql.engine import Database
from tests.unit.db.rows import nodes

SERVERS = {"postgresql": os.environ.get("KILONOVA_TEST_POSTGRESQL"), "mariadb": os.environ.get("KILONOVA_TEST_MARIADB")}
CELL0 = "00000000-0000-0000-0000-000000000000"
NOWHERE = "11111111-2222-3333-4444-555555555555"


@dataclass
class Site:
    """A configuration and what its commands print."""

    conf: Path
    url: Callable[[str], str]
    capsys: pytest.CaptureFixture[str]
    err: str = ""

    def run(self, *words: str, code: int = 0) -> str:
        """What a command prints; it must end with the exit code."""
        ended = main([words[0], "--config-file", str(self.conf), *words[1:]])
        out, self.err = self.capsys.readouterr()
        assert ended == code, out + self.err
        return out

    def manage(self, *words: str, code: int = 0) -> str:
        ended = nova_manage.run(["--config-file", str(self.conf), *words])
        out, self.err = self.capsys.readouterr()
        assert ended == code, out + self.err
        return out

    def database(self, name: str) -> Database:
        return Database(self.url(name))

    def cells(self) -> dict[str, Any]:
        return {row["name"]: row for row in json.loads(self.run("cell", "list_cells", "-f", "json", "--verbose"))}


@pytest.fixture
def site(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Site:
    """Databases api, cell, cell_cell0, two and placement, all of them empty."""
    return _site(tmp_path, capsys, lambda name: f"sqlite:///{tmp_path}/{name}.db")


@pytest.fixture(params=SERVERS)
def site_on_server(
    request: pytest.FixtureRequest, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Iterator[Site]:
    """The same on a server; making databases takes seconds there, so one test has to do."""
    server = SERVERS[request.param]
    if not server:
        pytest.skip(f"no URL of a server of {request.param} is given")
    mark = f"kilonova_test_{ids.new_hex()[:10]}"
    engine = sa.create_engine(server, isolation_level="AUTOCOMMIT")
    made = [f"{mark}_{name}" for name in ("api", "cell", "cell_cell0", "placement")]
    with engine.connect() as connection:
        for name in made:
            connection.execute(sa.text(f"CREATE DATABASE {name}"))
    yield _site(
        tmp_path, capsys, lambda name: engine.url.set(database=f"{mark}_{name}").render_as_string(hide_password=False)
    )
    with engine.connect() as connection:
        for name in made:
            force = " WITH (FORCE)" if request.param == "postgresql" else ""
            connection.execute(sa.text(f"DROP DATABASE {name}{force}"))
    engine.dispose()


def _site(tmp_path: Path, capsys: pytest.CaptureFixture[str], url: Callable[[str], str]) -> Site:
    conf = tmp_path / "kilonova.conf"
    conf.write_text(
        "[DEFAULT]\n"
        f"state_path = {tmp_path}\ntransport_url = rabbit://nova:secret@broker/\n"
        f"[api_database]\nconnection = {url('api')}\n[database]\nconnection = {url('cell')}\n"
        f"[placement_database]\nconnection = {url('placement')}\n"
    )
    return Site(conf, url, capsys)


@pytest.fixture
def synced(site: Site) -> Site:
    """The same with tables, cell0 and cell1."""
    site.run("db", "sync", "--api")
    site.run("cell", "map_cell0")
    site.run("cell", "create_cell", "--name", "cell1")
    site.run("db", "sync")
    return site


def test_sync_makes_every_database_that_is_named_and_may_be_repeated(site: Site) -> None:
    words = site.run("db", "sync").splitlines()
    assert [line.split(":")[0] for line in words] == ["api", "placement", "cell"]
    assert all("made at revision" in line for line in words)
    site.run("cell", "map_cell0")
    site.run("cell", "create_cell", "--name", "cell1")
    words = site.run("db", "sync").splitlines()
    assert [line.split(":")[0] for line in words] == ["api", "placement", "cell0", "cell1"]
    assert [("made" in line, "already" in line) for line in words].count((True, False)) == 1


def test_the_whole_of_it_on_a_server(site_on_server: Site) -> None:
    site = site_on_server
    test_sync_makes_every_database_that_is_named_and_may_be_repeated(site)
    test_discovery_maps_the_hosts_that_reported_and_lists_them(site)
    uuid = site.cells()["cell1"]["uuid"]
    site.run("cell", "update_cell", "--cell_uuid", uuid, "--disable")
    assert site.cells()["cell1"]["disabled"] is True
    server(site, uuid, deleted=True)
    site.run("cell", "delete_cell", "--cell_uuid", uuid, code=2)
    site.run("cell", "delete_cell", "--cell_uuid", uuid, "--force")
    assert mapped(site) == []


@pytest.mark.parametrize("kind", ["api", "cell", "placement"])
def test_sync_of_one_kind_leaves_the_others(site: Site, kind: str) -> None:
    assert [line.split(":")[0] for line in site.run("db", "sync", f"--{kind}").splitlines()] == [kind]
    shown = json.loads(site.run("db", "version", "-f", "json"))
    assert {row["database"] for row in shown if row["revision"]} == {kind}
    assert {row["state"] for row in shown} == {"up to date", "no tables: run `kilonova db sync`"}


def test_a_database_that_fails_does_not_keep_the_others_from_being_synced(synced: Site) -> None:
    synced.run("cell", "update_cell", "--cell_uuid", synced.cells()["cell1"]["uuid"],
               "--database_connection", "mysql://u:secret@127.0.0.1:1/x")  # fmt: skip
    lines = synced.run("db", "sync", code=1)
    assert "cell0: " in lines
    assert "cell1: The database mysql+pymysql://u:****@127.0.0.1:1/x does not answer" in synced.err


def test_what_a_newer_program_wrote_is_refused_and_shown(synced: Site) -> None:
    cell = synced.database("cell")
    with cell.write() as connection:
        connection.execute(sa.text("UPDATE alembic_version SET version_num = '9999'"))
    synced.run("db", "sync", code=1)
    assert "9999, which this version of Kilonova does not know" in synced.err
    states = {row["database"]: row["state"] for row in json.loads(synced.run("db", "version", "-f", "json"))}
    assert states["cell1"] == "newer than this program"
    cell.dispose()


def test_a_database_that_was_left_half_made_is_finished(synced: Site) -> None:
    api = synced.database("api")
    with api.write() as connection:
        connection.execute(sa.text("UPDATE alembic_version SET version_num = 'making'"))
        connection.execute(sa.text("DROP TABLE quotas"))
    api.dispose()
    shown = json.loads(synced.run("db", "version", "--api", "-f", "json"))[0]
    assert shown["state"].startswith("being made, or left half made")
    synced.run("cell", "list_cells", code=1)
    assert "has no tables yet" in synced.err
    assert "made at revision" in synced.run("db", "sync", "--api")
    assert synced.cells()


def test_passwords_are_shown_only_when_asked_for(synced: Site) -> None:
    table = synced.run("cell", "list_cells")
    assert "rabbit://nova:****@broker/" in table
    assert "secret" not in table + synced.run("db", "version")
    assert "rabbit://nova:secret@broker/" in synced.run("cell", "list_cells", "--verbose")
    assert [line.split("|")[1].strip() for line in table.splitlines()[3:-1]] == ["cell0", "cell1"]


def test_cell0_is_beside_the_cell_and_registered_once(synced: Site) -> None:
    cell0 = synced.cells()["cell0"]
    assert (cell0["uuid"], cell0["transport_url"]) == (CELL0, "none:///")
    assert cell0["database_connection"] == synced.url("cell_cell0")
    assert "already" in synced.run("cell", "map_cell0")
    synced.run("cell", "map_cell0", "--database_connection", synced.url("two"), code=1)
    assert "cell0 is in the registry already" in synced.err


def test_create_prints_the_uuid_when_asked_and_takes_what_it_is_given(synced: Site) -> None:
    words = ("--name", "two", "--transport-url", "rabbit://b:c@other/v", "--database_connection", synced.url("two"))
    uuid = synced.run("cell", "create_cell", *words, "--disabled", "--verbose").strip()
    assert synced.cells()["two"] == {
        "name": "two", "uuid": uuid, "transport_url": "rabbit://b:c@other/v",
        "database_connection": synced.url("two"), "disabled": True,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ((), 2, "already has the database"),
        (("--database_connection", "postgresql://u:p@h/other"), 2, "already has the transport URL rabbit://nova:****@"),
        (("--database_connection", "nonsense"), 1, "cannot be used"),
        (("--transport-url", "nonsense", "--database_connection", "postgresql://u:p@h/d"), 1, "no address of a mess"),
    ],
)
def test_create_refuses_what_another_cell_has_and_what_is_no_address(
    synced: Site, words: tuple[str, ...], code: int, said: str
) -> None:
    before = synced.cells()
    synced.run("cell", "create_cell", "--name", "other", *words, code=code)
    assert said in synced.err
    assert synced.cells() == before


def test_create_says_which_setting_is_missing(site: Site) -> None:
    site.run("db", "sync", "--api")
    site.conf.write_text(f"[api_database]\nconnection = {site.url('api')}\n")
    site.run("cell", "create_cell", code=1)
    assert "--transport-url" in site.err
    site.run("cell", "create_cell", "--transport-url", "rabbit://h/", code=1)
    assert "--database_connection" in site.err


def test_update_changes_what_is_given_and_only_that(synced: Site) -> None:
    before = synced.cells()["cell1"]
    synced.run("cell", "update_cell", "--cell_uuid", before["uuid"], "--name", "first", "--disable")
    assert synced.cells()["first"] == before | {"name": "first", "disabled": True}
    synced.run("cell", "update_cell", "--cell_uuid", before["uuid"], "--enable")
    assert synced.cells()["first"]["disabled"] is False


def test_update_with_nothing_follows_the_configuration(synced: Site) -> None:
    uuid = synced.cells()["cell1"]["uuid"]
    synced.conf.write_text(synced.conf.read_text().replace("@broker", "@newbroker"))
    synced.run("cell", "update_cell", "--cell_uuid", uuid)
    assert synced.cells()["cell1"]["transport_url"] == "rabbit://nova:secret@newbroker/"


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--cell_uuid", NOWHERE, "--name", "x"), 1),
        (("--cell_uuid", CELL0, "--transport-url", "nonsense"), 2),
        (("--cell_uuid", CELL0, "--transport-url", "rabbit://nova:secret@broker/"), 3),
        (("--cell_uuid", CELL0, "--enable", "--disable"), 4),
        (("--cell_uuid", CELL0, "--disable"), 5),
    ],
)
def test_update_refuses_with_the_exit_code_of_the_reason(synced: Site, words: tuple[str, ...], code: int) -> None:
    before = synced.cells()
    synced.run("cell", "update_cell", *words, code=code)
    assert synced.err
    assert synced.cells() == before


def server(site: Site, cell: str, *, deleted: bool) -> None:
    api = site.database("api")
    row = {"instance_uuid": ids.new_uuid(), "cell_uuid": cell, "project_id": "p", "user_id": "u"}
    with api.write() as connection:
        connection.execute(instance_mappings.insert(), row | {"queued_for_delete": deleted})
    api.dispose()


def mapped(site: Site) -> list[str]:
    api = site.database("api")
    with api.read() as connection:
        found = list(connection.execute(sa.select(host_mappings.c.host)).scalars())
    api.dispose()
    return found


def test_delete_refuses_a_cell_with_something_in_it(synced: Site) -> None:
    uuid = synced.cells()["cell1"]["uuid"]
    synced.run("cell", "delete_cell", "--cell_uuid", NOWHERE, code=1)
    report(synced, "cell", "h1")
    synced.run("cell", "discover_hosts")
    synced.run("cell", "delete_cell", "--cell_uuid", uuid, code=2)
    server(synced, uuid, deleted=False)
    synced.run("cell", "delete_cell", "--cell_uuid", uuid, "--force", code=3)
    assert mapped(synced) == ["h1"]


def test_delete_by_force_takes_hosts_and_records_of_deleted_servers_along(synced: Site) -> None:
    uuid = synced.cells()["cell1"]["uuid"]
    server(synced, uuid, deleted=True)
    synced.run("cell", "delete_cell", "--cell_uuid", uuid, code=4)
    report(synced, "cell", "h1")
    synced.run("cell", "discover_hosts")
    synced.run("cell", "delete_cell", "--cell_uuid", uuid, "--force")
    assert set(synced.cells()) == {"cell0"}
    assert mapped(synced) == []


def report(site: Site, cell: str, *names: str) -> None:
    database = site.database(cell)
    hosts.register(database, f"agent-{names[0]}", 1, 1, nodes(*names))
    database.dispose()


def test_discovery_maps_the_hosts_that_reported_and_lists_them(synced: Site) -> None:
    uuid = synced.cells()["cell1"]["uuid"]
    synced.run("cell", "discover_hosts", "--strict", code=1)
    synced.run("cell", "discover_hosts")
    report(synced, "cell", "h1", "h2")
    out = synced.run("cell", "discover_hosts", "--verbose", "--strict")
    assert "2 hosts report, 2 of them are new" in out
    assert "h1 mapped to" in out
    synced.run("cell", "discover_hosts", "--strict", "--cell_uuid", uuid, code=1)
    synced.run("cell", "discover_hosts", "--cell_uuid", NOWHERE, code=1)
    rows = json.loads(synced.run("cell", "list_hosts", "-f", "json"))
    assert [row["hostname"] for row in rows] == ["h1", "h2"]
    assert json.loads(synced.run("cell", "list_hosts", "--cell_uuid", CELL0, "-f", "json")) == []
    synced.run("cell", "list_hosts", "--cell_uuid", NOWHERE, code=1)


def test_discovery_by_service_finds_hosts_too(synced: Site) -> None:
    report(synced, "cell", "h1")
    synced.run("cell", "discover_hosts", "--by-service", "--strict")
    assert mapped(synced) == ["h1"]


def test_a_host_that_reports_in_two_cells_is_a_collision(synced: Site) -> None:
    synced.run("cell", "create_cell", "--name", "two", "--transport-url", "rabbit://b:c@other/v",
               "--database_connection", synced.url("two"))  # fmt: skip
    synced.run("db", "sync", "--cell")
    report(synced, "cell", "h1")
    report(synced, "two", "h1", "h2")
    synced.run("cell", "discover_hosts", code=2)
    assert "Host h1 reports in cell" in synced.err
    assert sorted(mapped(synced)) == ["h1", "h2"]


def put_server(site: Site, cell: str, host: str) -> None:
    """A row of a server on the host, with nothing in it but what a row must have."""
    must = [column for column in instances.c if not (column.nullable or column.primary_key or column.default)]
    row = {column.name: 0 if isinstance(column.type, sa.Integer) else "x" for column in must}
    database = site.database(cell)
    with database.write() as connection:
        connection.execute(instances.insert(), row | {"uuid": ids.new_uuid(), "host": host, "vm_state": "active"})
    database.dispose()


def test_a_host_leaves_its_cell_once_it_has_no_servers(synced: Site) -> None:
    uuid = synced.cells()["cell1"]["uuid"]
    report(synced, "cell", "busy", "idle")
    synced.run("cell", "discover_hosts")
    put_server(synced, "cell", "busy")
    for cell, host, code in ((NOWHERE, "idle", 1), (uuid, "other", 2), (CELL0, "idle", 3), (uuid, "busy", 4)):
        synced.run("cell", "delete_host", "--cell_uuid", cell, "--host", host, code=code)
        assert synced.err.startswith("kilonova: ")
    assert mapped(synced) == ["busy", "idle"]
    synced.run("cell", "delete_host", "--cell_uuid", uuid, "--host", "idle")
    assert mapped(synced) == ["busy"]


def test_without_tables_the_sentence_says_what_makes_them(site: Site) -> None:
    site.run("cell", "list_cells", code=1)
    assert "run `kilonova db sync`" in site.err


def test_nova_manage_is_the_same_under_the_names_that_scripts_know(site: Site) -> None:
    assert site.manage("api_db", "sync").startswith("api: ")
    site.manage("cell_v2", "map_cell0")
    assert [line.split(":")[0] for line in site.manage("db", "sync").splitlines()] == ["cell0", "cell"]
    uuid = site.manage("cell_v2", "create_cell", "--name=cell1", "--verbose").strip()
    assert uuid in site.manage("cell_v2", "list_cells")
    assert [line.split(":")[0] for line in site.manage("db", "sync", "--local_cell").splitlines()] == ["cell"]
    assert "| api " in site.manage("api_db", "version")
    site.manage("cell_v2", "discover_hosts", "--strict", code=1)


def test_nova_manage_says_what_there_is_not(site: Site) -> None:
    site.manage("limits", "migrate_to_unified_limits", code=2)
    assert "There is no limits here" in site.err
    site.manage("placement", "audit", "--verbose", code=1)  # it is there, its database is not
    assert "has no tables yet" in site.err
    with pytest.raises(SystemExit) as left:
        site.manage("db", "archive_deleted_rows")
    assert left.value.code == 2


@pytest.mark.parametrize("value", ["-1", "inf", "nan", "soon"])
def test_a_wait_is_a_number_of_seconds(site: Site, value: str) -> None:
    with pytest.raises(SystemExit) as left:
        site.run("db", "sync", f"--wait={value}")
    assert left.value.code == 2


def test_a_configuration_that_cannot_be_read_is_one_sentence(site: Site) -> None:
    site.conf.write_text("nonsense")
    site.run("db", "sync", code=1)
    assert site.err.startswith("kilonova: The configuration cannot be read")
    assert site.err.count("\n") == 1
