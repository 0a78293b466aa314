"""Where the databases of a configuration are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kilonova.conf import databases
from kilonova.conf.load import load


def test_without_a_connection_they_are_files_under_the_state_path(tmp_path: Path) -> None:
    conf = load((), {"state_path": str(tmp_path)})
    place = load((), {"state_path": str(tmp_path)}, application="placement")
    assert databases.address(conf, "api_database") == f"sqlite:///{tmp_path}/api.db"
    assert databases.address(conf, "database") == f"sqlite:///{tmp_path}/cell1.db"
    assert databases.cell0_address(conf) == f"sqlite:///{tmp_path}/cell0.db"
    assert databases.address(place, "placement_database") == f"sqlite:///{tmp_path}/placement.db"


def test_the_state_path_is_made_when_a_file_in_it_is_opened(tmp_path: Path) -> None:
    databases.open_database(load((), {"state_path": str(tmp_path / "a/b")}), "api_database").dispose()
    assert (tmp_path / "a/b").is_dir()


def test_a_connection_is_taken_as_it_is_with_the_pool_that_its_group_has() -> None:
    url = "mysql+pymysql://nova:pw@db/nova"
    pool = {"database.max_pool_size": 3, "database.max_overflow": 0, "database.pool_timeout": 2}
    conf = load((), {"database.connection": url, **pool})
    assert databases.cell0_address(conf) == "mysql+pymysql://nova:pw@db/nova_cell0"
    opened = databases.open_database(conf, "database")
    assert opened.url.render_as_string(hide_password=False) == url
    made: Any = opened._reader.pool
    assert (made.size(), made._max_overflow, made._timeout) == (3, 0, 2)


def test_a_state_path_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    conf = load((), {"state_path": str(tmp_path / "file")})
    with pytest.raises(databases.StatePathUnusable, match=r"file exists.*state_path.*\[api_database\]"):
        databases.open_database(conf, "api_database")
