"""A process starts only on databases whose tables are of its own version, and says what is to be done."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from kilonova.bus.local import LocalBus
from kilonova.cmd.main import main
from kilonova.conf.load import load
from kilonova.core.errors import Unavailable
from kilonova.sql import migrate
from kilonova.sql.engine import Database
from kilonova.sql.migrate import DatabaseEmpty, DatabaseNewer, DatabaseOlder
from kilonova.wiring import region
from kilonova.wiring.conductor import CellZeroMissing, conductor


@pytest.fixture
def conf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(region, "open_bus", lambda *_, **__: LocalBus())
    path = tmp_path / "kilonova.conf"
    path.write_text(
        f"[DEFAULT]\nstate_path = {tmp_path}\ntransport_url = rabbit://h/\n"
        f"[api_database]\nconnection = sqlite:///{tmp_path}/api.db\n"
        f"[database]\nconnection = sqlite:///{tmp_path}/cell.db\n"
        "[keystone_authtoken]\nauth_type = password\nauth_url = http://h\nusername = nova\npassword = x\n"
    )
    return path


def start(conf: Path) -> Any:
    return conductor(load([conf], warn=False))


def run(*words: str, conf: Path) -> None:
    assert main([*words[:2], "--config-file", str(conf), *words[2:]]) == 0


def stamp(path: Path, revision: str) -> None:
    database = Database(f"sqlite:///{path}")
    with database.write() as connection:
        connection.execute(sa.text("UPDATE alembic_version SET version_num = :r"), {"r": revision})
    database.dispose()


def test_each_step_of_a_first_set_up_is_waited_for(conf: Path) -> None:
    with pytest.raises(DatabaseEmpty, match=r"api.db has no tables yet"):
        start(conf)
    run("db", "sync", "--api", conf=conf)
    run("cell", "create_cell", "--name", "cell1", conf=conf)
    with pytest.raises(DatabaseEmpty, match=r"cell.db has no tables yet"):
        start(conf)
    run("db", "sync", conf=conf)
    with pytest.raises(CellZeroMissing, match="map_cell0"):
        start(conf)
    run("cell", "map_cell0", conf=conf)
    with pytest.raises(DatabaseEmpty, match=r"cell_cell0.db has no tables yet"):
        start(conf)
    run("db", "sync", conf=conf)
    start(conf).stop()
    assert issubclass(DatabaseEmpty, Unavailable)  # which the commands of services wait for
    assert issubclass(CellZeroMissing, Unavailable)


@pytest.mark.parametrize("name", ["api", "cell", "cell_cell0"])
def test_tables_of_another_version_are_refused(conf: Path, name: str) -> None:
    run("db", "sync", "--api", conf=conf)
    run("cell", "create_cell", "--name", "cell1", conf=conf)
    run("cell", "map_cell0", conf=conf)
    run("db", "sync", conf=conf)
    stamp(conf.parent / f"{name}.db", "9999")
    with pytest.raises(DatabaseNewer, match=f"{name}.db is at revision 9999"):
        start(conf)


def test_tables_that_lack_a_revision_are_waited_for(conf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("db", "sync", "--api", conf=conf)
    known = migrate.revisions("kilonova.db.migrations.api")
    monkeypatch.setattr("kilonova.sql.migrate.revisions", lambda _: [*known, "9998"])
    with pytest.raises(DatabaseOlder, match=f"at revision {known[-1]} and not at 9998 yet"):
        start(conf)
    assert issubclass(DatabaseOlder, Unavailable)
