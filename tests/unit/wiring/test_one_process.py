"""A cloud in one process takes each database where the configuration has it."""

from __future__ import annotations

from pathlib import Path

import pytest

from kilonova.conf.load import ConfigError, load
from kilonova.http.noauth import NoAuthElsewhere
from kilonova.sql.reach import DatabaseUnreachable
from kilonova.wiring import all_in_one
from kilonova.wiring.placement import capacity
from tests.scenario.stage import settings


def test_a_database_that_is_named_is_there_and_the_others_are_files(tmp_path: Path) -> None:
    groups = {"database": "cell", "placement_database": "p", "embedded": "{service}"}
    config = "\n".join(
        f"[{group}]\nconnection = sqlite:///{tmp_path}/elsewhere-{name}.db" for group, name in groups.items()
    )
    all_in_one(settings(tmp_path / "state", config=config)).stop()
    assert {path.name for path in (tmp_path / "state" / "databases").glob("*.db")} == {"api.db"}
    assert {path.name.removeprefix("elsewhere-") for path in tmp_path.glob("*.db")} == {
        "cell.db", "cell_cell0.db", "p.db", "identity.db", "images.db", "network.db", "volumes.db",
    }  # fmt: skip


@pytest.mark.parametrize("group", ["api_database", "database", "placement_database", "embedded"])
def test_a_database_that_does_not_answer_is_one_sentence_without_its_password(tmp_path: Path, group: str) -> None:
    config = f"[{group}]\nconnection = postgresql://u:secret@127.0.0.1:1/d\n"
    with pytest.raises(DatabaseUnreachable, match=r"127.0.0.1:1/d(_cell0)? does not answer: .*refused") as refused:
        all_in_one(settings(tmp_path / "state", config=config))
    assert "secret" not in refused.value.text


def test_a_placement_that_believes_its_clients_is_neither_part_of_a_cloud_nor_seen_from_outside(tmp_path: Path) -> None:
    config = "[api]\nauth_strategy = noauth2\n"
    with pytest.raises(ConfigError, match="a Placement of its own"):
        all_in_one(settings(tmp_path / "state", config=config))
    (tmp_path / "kilonova.conf").write_text(f"{config}[placement_database]\nconnection = sqlite:///{tmp_path}/p.db\n")
    conf = load([tmp_path / "kilonova.conf"], application="placement", warn=False)
    for address in ("0.0.0.0", "::", "192.0.2.1", "host.example.com"):
        with pytest.raises(NoAuthElsewhere, match="loopback"):
            capacity(conf, address, 0)
    capacity(conf, "127.0.0.1", 0).stop()
