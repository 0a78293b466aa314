"""tools/venv.sh on machines that are not as they should be, played by stand-ins for Python in PATH."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[3] / "tools/venv.sh"

PYTHON = """#!/bin/sh
# A stand-in: $0's folder says which version it is and what it lacks.
case "$*" in
    *version_info*) [ {new} = yes ] ;;
    *ensurepip*) [ {venv} = yes ] ;;
    "-m venv"*) mkdir -p "$3/bin" && cp "$0" "$3/bin/python" && echo {name} > "$3/made-by" ;;
    "-m pip"*) [ {pip} = yes ] && echo "$@" >> pip-was-asked ;;
esac
"""


class Machine:
    """A checkout and folders of PATH, each with one Python."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.path: list[Path] = []
        (root / "tools").mkdir()
        shutil.copy(SCRIPT, root / "tools")
        (root / "some.lock").touch()

    def add(self, name: str, *, new: bool = True, venv: bool = True, pip: bool = True) -> None:
        folder = self.root / f"path {len(self.path)}"
        folder.mkdir()
        said = {"new": new, "venv": venv, "pip": pip}
        words = {key: "yes" if value else "no" for key, value in said.items()}
        (folder / name).write_text(PYTHON.format(name=f"{name}-{len(self.path)}", **words))
        (folder / name).chmod(0o755)
        self.path.append(folder)

    def run(self, *more: str, **environment: str) -> subprocess.CompletedProcess[str]:
        tools = self.root / "bin"  # the few programs that the script calls, and no real Python
        if not tools.exists():
            tools.mkdir()
            for name in ("mkdir", "cp", "rm", "dirname", "cat"):
                (tools / name).symlink_to(str(shutil.which(name)))
        path = os.pathsep.join(map(str, [*self.path, tools]))
        command = ["/bin/sh", str(self.root / "tools/venv.sh"), "env", "some.lock", *more]
        return subprocess.run(command, env={"PATH": path} | environment, capture_output=True, text=True, check=False)

    def made_by(self) -> str:
        return (self.root / "env/made-by").read_text().strip()


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def sentence(result: subprocess.CompletedProcess[str]) -> str:
    assert result.returncode == 1
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1, result.stderr
    return result.stderr


def test_an_old_python_that_stands_first_is_passed_over(machine: Machine) -> None:
    machine.add("python3", new=False)
    machine.add("python3.12", new=False)  # a version manager's shim with nothing behind it
    machine.add("python3")
    assert machine.run().returncode == 0
    assert machine.made_by() == "python3-2"


def test_a_python_without_venv_is_passed_over(machine: Machine) -> None:
    machine.add("python3", venv=False)
    machine.add("python3.13")
    assert machine.run().returncode == 0
    assert machine.made_by() == "python3.13-1"


def test_no_python_at_all_is_said(machine: Machine) -> None:
    machine.add("python3", new=False)
    assert "Python 3.11 or newer is needed" in sentence(machine.run())


def test_a_missing_venv_module_is_said_with_what_installs_it(machine: Machine) -> None:
    machine.add("python3", venv=False)
    assert "apt-get install python3-venv" in sentence(machine.run())


def test_packages_that_cannot_be_installed_are_said(machine: Machine) -> None:
    machine.add("python3", pip=False)
    assert "HTTPS_PROXY" in sentence(machine.run())


def test_the_python_that_is_named_is_taken(machine: Machine) -> None:
    machine.add("python3")
    machine.add("python3.12")
    assert machine.run(PYTHON="python3.12").returncode == 0
    assert machine.made_by() == "python3.12-1"


def test_a_half_made_environment_is_made_anew_and_a_whole_one_is_kept(machine: Machine) -> None:
    machine.add("python3")
    (machine.root / "env/bin").mkdir(parents=True)
    (machine.root / "env/left-over").touch()
    assert machine.run().returncode == 0
    assert not (machine.root / "env/left-over").exists()
    (machine.root / "env/kept").touch()
    assert machine.run("editable").returncode == 0
    assert (machine.root / "env/kept").exists()
    assert "-e ." in (machine.root / "pip-was-asked").read_text()
