"""The example files and units of docs/operate: every option is read, every command and file that they name exists."""

from __future__ import annotations

import configparser
import logging
import re
from pathlib import Path

import pytest

from kilonova.cmd.main import COMMANDS
from kilonova.conf.load import load

OPERATE = Path(__file__).parents[3] / "docs/operate"
FILES = sorted((OPERATE / "examples").glob("*.conf"))
UNITS = sorted((OPERATE / "systemd").glob("*.service"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_option_of_an_example_is_read(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        load([path], application="placement" if path.stem == "placement" else "compute")
    assert [record.getMessage() for record in caplog.records] == []


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_a_unit_runs_a_command_that_is_there_with_an_example_that_is_there(path: Path) -> None:
    unit = configparser.RawConfigParser(strict=False)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read(path)
    program, command, *rest = unit["Service"]["ExecStart"].split()
    assert program == "/usr/local/bin/kilonova"
    assert command in COMMANDS
    assert Path(rest[rest.index("--config-file") + 1]).name in {file.name for file in FILES}


def test_the_page_names_every_example_and_only_files_that_are_there() -> None:
    page = (OPERATE / "processes.md").read_text(encoding="utf-8")
    linked = set(re.findall(r"\]\(([^)]+)\)", page))
    assert {f"examples/{file.name}" for file in FILES} <= linked
    assert [link for link in linked if not (OPERATE / link).exists()] == []
