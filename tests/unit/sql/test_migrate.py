from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from kilonova.sql import migrate
from kilonova.sql.engine import Database
from kilonova.sql.types import new_metadata

FIRST = """
import sqlalchemy as sa
from alembic import op
revision, down_revision = "0001", None
def upgrade():
    op.create_table("parents", sa.Column("id", sa.Integer, primary_key=True), sa.Column("name", sa.String(9)))
    op.create_table("children", sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("parent", sa.Integer, sa.ForeignKey("parents.id", ondelete="CASCADE", name="fk_p"), nullable=False))
"""
SECOND = """
import sqlalchemy as sa
from alembic import op
revision, down_revision = "0002", "0001"
def upgrade():
    with op.batch_alter_table("parents", recreate="always") as batch:
        batch.add_column(sa.Column("colour", sa.String(9)))
"""
FAILING = SECOND.replace('"0002", "0001"', '"0003", "0002"') + "    raise ValueError('half way')\n"
ENV = "from kilonova.sql import revisions\nimport sqlalchemy as sa\nrevisions.run(sa.MetaData())\n"


def tables(*, colour: bool) -> sa.MetaData:
    metadata = new_metadata()
    more = [sa.Column("colour", sa.String(9))] if colour else []
    sa.Table("parents", metadata, sa.Column("id", sa.Integer, primary_key=True), sa.Column("name", sa.String(9)), *more)
    parent = sa.Column("parent", sa.ForeignKey("parents.id", ondelete="CASCADE"), nullable=False)
    sa.Table("children", metadata, sa.Column("id", sa.Integer, primary_key=True), parent)
    return metadata


@pytest.fixture
def scripts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The package `family_revisions`, with one revision."""
    folder = tmp_path / "family_revisions"
    (folder / "versions").mkdir(parents=True)
    (folder / "__init__.py").touch()
    (folder / "env.py").write_text(ENV)
    (folder / "versions/0001_family.py").write_text(FIRST)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield folder
    sys.modules.pop("family_revisions", None)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    database = Database(f"sqlite:///{tmp_path}/family.sqlite")
    yield database
    database.dispose()


def rows(database: Database, statement: str) -> list[tuple[Any, ...]]:
    with database.read() as connection:
        return [tuple(row) for row in connection.execute(sa.text(statement))]


def test_a_new_database_gets_every_table_its_seed_and_the_newest_stamp(scripts: Path, database: Database) -> None:
    (scripts / "versions/0002_colour.py").write_text(SECOND)

    def seed(connection: sa.Connection) -> None:
        connection.execute(sa.text("INSERT INTO parents (name) VALUES ('Eve')"))

    for _ in range(2):
        migrate.prepare(database, tables(colour=True), "family_revisions", seed=seed)
    assert migrate.stamp(database) == "0002"
    assert rows(database, "SELECT name, colour FROM parents") == [("Eve", None)]


def test_making_a_new_database_does_not_load_alembic(tmp_path: Path) -> None:
    program = (
        "import sys\nfrom kilonova.sql import migrate\nfrom kilonova.sql.engine import Database\n"
        "from kilonova.db.cell_schema import metadata\n"
        f"migrate.prepare(Database('sqlite:///{tmp_path}/x.sqlite'), metadata, 'kilonova.db.migrations.cell')\n"
        "print('alembic' in sys.modules)"
    )
    assert subprocess.check_output([sys.executable, "-c", program], text=True) == "False\n"


def test_an_older_database_runs_what_it_lacks_and_keeps_its_rows(scripts: Path, database: Database) -> None:
    migrate.prepare(database, tables(colour=False), "family_revisions")
    with database.write() as connection:
        connection.execute(sa.text("INSERT INTO parents (id, name) VALUES (1, 'Eve')"))
        connection.execute(sa.text("INSERT INTO children (parent) VALUES (1)"))
    (scripts / "versions/0002_colour.py").write_text(SECOND)
    migrate.prepare(database, tables(colour=True), "family_revisions")
    assert migrate.stamp(database) == "0002"
    assert rows(database, "SELECT name, colour FROM parents") == [("Eve", None)]
    assert rows(database, "SELECT parent FROM children") == [(1,)]


def test_a_revision_that_fails_leaves_the_database_as_it_was(scripts: Path, database: Database) -> None:
    migrate.prepare(database, tables(colour=False), "family_revisions")
    (scripts / "versions/0002_colour.py").write_text(SECOND)
    (scripts / "versions/0003_failing.py").write_text(FAILING)
    with pytest.raises(ValueError, match="half way"):
        migrate.prepare(database, tables(colour=True), "family_revisions")
    assert migrate.stamp(database) == "0001"
    assert {column["name"] for column in sa.inspect(database._reader).get_columns("parents")} == {"id", "name"}


def test_a_database_from_a_newer_version_is_refused(scripts: Path, database: Database) -> None:
    migrate.prepare(database, tables(colour=False), "family_revisions")
    with database.write() as connection:
        connection.execute(sa.text("UPDATE alembic_version SET version_num = '0777'"))
    with pytest.raises(migrate.DatabaseNewer, match="0777"):
        migrate.prepare(database, tables(colour=False), "family_revisions")
    assert migrate.stamp(database) == "0777"


def test_a_database_with_somebody_elses_tables_is_refused_and_left_alone(scripts: Path, database: Database) -> None:
    with database.write() as connection:
        connection.execute(sa.text("CREATE TABLE parents (surname VARCHAR(9))"))
    with pytest.raises(migrate.DatabaseForeign, match="parents"):
        migrate.prepare(database, tables(colour=False), "family_revisions")
    assert sa.inspect(database._reader).get_table_names() == ["parents"]


def test_tables_whose_making_was_cut_short_are_completed(scripts: Path, database: Database) -> None:
    with database.write() as connection:
        connection.execute(sa.text("CREATE TABLE alembic_version (version_num VARCHAR(32) PRIMARY KEY)"))
        connection.execute(sa.text("INSERT INTO alembic_version VALUES ('making')"))
        tables(colour=False).tables["parents"].create(connection)
    migrate.prepare(database, tables(colour=False), "family_revisions")
    assert migrate.stamp(database) == "0001"
    assert set(sa.inspect(database._reader).get_table_names()) == {"alembic_version", "children", "parents"}


def test_several_may_prepare_one_database_at_once(scripts: Path, database: Database) -> None:
    failures: list[BaseException] = []

    def prepare() -> None:
        own = Database(str(database.url))
        try:
            migrate.prepare(own, tables(colour=False), "family_revisions", seed=lambda c: seeds.append(1))
        except BaseException as error:
            failures.append(error)
        finally:
            own.dispose()

    seeds: list[int] = []
    threads = [threading.Thread(target=prepare) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert seeds == [1]
