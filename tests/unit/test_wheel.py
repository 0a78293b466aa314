"""What the program reads beside its code is in the wheel, too."""

from __future__ import annotations

import subprocess
import tomllib
from pathlib import Path, PurePosixPath

import pytest

ROOT = Path(__file__).resolve().parents[2]


def tracked(*what: str) -> list[str]:
    """Files of the repository; the test is skipped where there is none (an unpacked archive)."""
    if not (ROOT / ".git").exists():
        pytest.skip("no repository")
    return subprocess.check_output(["git", "ls-files", "-z", *what], cwd=ROOT, text=True).strip("\0").split("\0")


def globs() -> list[str]:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    assert settings["packages"]["find"]["include"] == ["kilonova*"]
    return list(settings["package-data"]["kilonova"])


def test_each_file_that_is_no_code_matches_a_glob_of_the_package_data() -> None:
    data = [name.removeprefix("kilonova/") for name in tracked("kilonova") if not name.endswith(".py")]
    assert "conf/known_options.json" in data
    plain = [glob.removeprefix("**/") for glob in globs()]
    assert [name for name in data if not any(PurePosixPath(name).match(glob) for glob in plain)] == []


def test_each_folder_with_code_is_a_package() -> None:
    folders = {str(PurePosixPath(name).parent) for name in tracked("kilonova") if name.endswith(".py")}
    assert [folder for folder in sorted(folders) if not (ROOT / folder / "__init__.py").is_file()] == []
