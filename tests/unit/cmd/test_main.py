from __future__ import annotations

import subprocess
import sys

import pytest

from kilonova.cmd.main import COMMANDS, main


def test_help_names_every_command_and_imports_none(capsys: pytest.CaptureFixture[str]) -> None:
    program = (
        "import sys\nfrom kilonova.cmd.main import main\n"
        "try:\n    main(['--help'])\nfinally:\n"
        "    heavy = {'sqlalchemy', 'oslo_config', 'yaml', 'kilonova.cmd.up'}\n"
        "    print(sorted(heavy & sys.modules.keys()))"
    )
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert out.splitlines()[-1] == "[]"
    assert all(f"    {name} " in out for name in COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_its_options(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main([name, "--help"])
    assert left.value.code == 0
    options = [line for line in capsys.readouterr().out.splitlines() if line.startswith("  -")]
    assert len(options) > 1  # more than --help


@pytest.mark.parametrize("arguments", [[], ["fly"], ["up", "there"]])
def test_wrong_usage_has_exit_code_two(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(arguments)
    assert left.value.code == 2
    assert "usage: kilonova" in capsys.readouterr().err
