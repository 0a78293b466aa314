"""The rules of HACKING.md that a machine can check. Each test names its rule's number there."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
OURS = ("kilonova", "tests", "tools", "benchmarks")
MAX_FUNCTION, MAX_FILE = 60, 500
HALLS = {"utils.py", "util.py", "helpers.py", "helper.py", "manager.py", "base.py", "common.py", "misc.py"}

SQL_ROOMS = ("kilonova/sql/", "kilonova/db/", "kilonova/placement/store/", "kilonova/embedded/")
CLOCK_AND_CHANCE = {
    "time.time", "time.monotonic", "time.sleep", "time.perf_counter", "datetime.now", "datetime.utcnow",
    "datetime.datetime.now", "datetime.datetime.utcnow", "uuid.uuid4", "uuid.uuid1",
}  # fmt: skip
"""What only core.clock and core.ids may call, so that a seed reproduces a run."""


@cache
def sources() -> dict[str, str]:
    """Our Python files, path from the root to text; migration revisions are records, not code."""
    found = {}
    for folder in OURS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            name = path.relative_to(ROOT).as_posix()
            if "/migrations/" not in name or "/versions/" not in name:
                found[name] = path.read_text(encoding="utf-8")
    return found


@cache
def trees() -> dict[str, ast.Module]:
    return {name: ast.parse(text) for name, text in sources().items()}


def product() -> Iterator[tuple[str, ast.Module]]:
    """The modules of the package itself."""
    return ((name, tree) for name, tree in trees().items() if name.startswith("kilonova/"))


def imports(tree: ast.Module) -> Iterator[str]:
    """Every module that is imported anywhere in the file."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield node.module or ""


def dotted(node: ast.expr) -> str:
    """`a.b.c` for an attribute chain, else an empty string."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (left := dotted(node.value)):
        return f"{left}.{node.attr}"
    return ""


def test_the_checks_see_the_code() -> None:
    assert "kilonova/core/errors.py" in sources()
    assert "tests/unit/test_house.py" in sources()


def test_1_no_function_is_longer_than_sixty_lines() -> None:
    long = [
        f"{name}:{node.lineno} {node.name} has {length} lines"
        for name, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (length := (node.end_lineno or 0) - node.lineno + 1) > MAX_FUNCTION
    ]
    assert long == []


def test_1_no_file_is_longer_than_five_hundred_lines() -> None:
    long = [f"{name} has {n} lines" for name, text in sources().items() if (n := text.count("\n")) > MAX_FILE]
    assert long == []


def test_2_no_file_is_named_for_everything_and_nothing() -> None:
    assert [name for name in sources() if Path(name).name in HALLS] == []


def test_3_every_module_says_what_it_is_for() -> None:
    silent = [name for name, tree in product() if tree.body and not ast.get_docstring(tree)]
    assert silent == []


def test_4_nothing_reads_like_unfinished_work() -> None:
    words = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X|NotImplemented" r"Error)\b")
    unfinished = [
        f"{name}:{number}"
        for name, text in sources().items()
        for number, line in enumerate(text.splitlines(), 1)
        if words.search(line)
    ]
    assert unfinished == []


def test_5_sqlalchemy_is_imported_only_where_tables_live() -> None:
    astray = [
        f"{name} imports {module}"
        for name, tree in product()
        if not name.startswith(SQL_ROOMS)
        for module in imports(tree)
        if module.split(".")[0] in ("sqlalchemy", "alembic")
    ]
    assert astray == []


def test_6_time_and_chance_come_from_core() -> None:
    astray = [
        f"{name}:{node.lineno} {call}"
        for name, tree in product()
        if name not in ("kilonova/core/clock.py", "kilonova/core/ids.py")
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and (call := dotted(node.func))
        if call in CLOCK_AND_CHANCE or call.startswith(("random.", "secrets."))
    ]
    assert astray == []


def test_7_only_commands_print() -> None:
    astray = [
        f"{name}:{node.lineno}"
        for name, tree in product()
        if not name.startswith("kilonova/cmd/")
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and dotted(node.func) == "print"
    ]
    assert astray == []


def text_files() -> Iterator[tuple[str, str]]:
    """Every file of the project that is text, the folders of tools and caches apart."""
    for path in sorted(ROOT.rglob("*")):
        parts = path.relative_to(ROOT).parts
        hidden = any(part.startswith(".") and part != ".ci" for part in parts[:-1])
        generated = any(part in ("__pycache__", "build", "dist") or part.endswith(".egg-info") for part in parts)
        if path.is_file() and not hidden and not generated:
            try:
                yield "/".join(parts), path.read_text(encoding="utf-8")
            except UnicodeDecodeError:
                continue


def test_8_no_file_names_a_place_on_one_machine() -> None:
    places = re.compile("|".join(("/ro" "ot/", "/wo" "rk/", r"/home/(?!user\b)\w", "/tmp/k" "n")))
    astray = [
        f"{name}:{text.count(chr(10), 0, match.start()) + 1}"
        for name, text in text_files()
        if (match := places.search(text))
    ]
    assert astray == []


def declared() -> dict[str, str]:
    """The dependencies of pyproject.toml: name to the list it stands in."""
    with open(ROOT / "pyproject.toml", "rb") as file:
        document = tomllib.load(file)
    lists = {"runtime": document["project"]["dependencies"]}
    lists |= document["project"]["optional-dependencies"] | document["dependency-groups"]
    return {
        re.split(r"[\[<>=!~; ]", line)[0].lower().replace("_", "-").replace(".", "-"): where
        for where, lines in lists.items()
        for line in lines
    }


def test_9_every_dependency_has_a_reason_in_the_documents() -> None:
    page = (ROOT / "docs/decisions/dependencies.md").read_text(encoding="utf-8")
    explained = {name.lower().replace(".", "-") for name in re.findall(r"^\| `([^`]+)` \|", page, re.MULTILINE)}
    assert declared().keys() - explained == set(), "dependencies without a line"
    assert explained - declared().keys() == set(), "lines without a dependency"


def test_11_links_between_documents_lead_somewhere() -> None:
    broken = [
        f"{name}: {link}"
        for name, text in text_files()
        if name.endswith(".md")
        for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text)
        if not (ROOT / name).parent.joinpath(link).exists()
    ]
    assert broken == []


LOCKS = {
    "runtime": "requirements.lock", "build": "requirements.lock", "client": "requirements-client.lock",
    "peers": "requirements-peers.lock",
}  # fmt: skip
LOCK_FILES = sorted({*LOCKS.values(), "requirements-dev.lock"})


@pytest.mark.parametrize("lock", LOCK_FILES)
def test_10_a_lock_file_pins_every_line_and_names_no_place_to_load_from(lock: str) -> None:
    lines = [line for line in (ROOT / lock).read_text().splitlines() if line and not line.lstrip().startswith("#")]
    assert [line for line in lines if not re.match(r"^[a-z0-9-]+==[\w.]+( ; .+)?$", line)] == []


def test_10_every_dependency_is_locked() -> None:
    locked = {lock: set(re.findall(r"^([a-z0-9-]+)==", (ROOT / lock).read_text(), re.MULTILINE)) for lock in
              LOCK_FILES}  # fmt: skip
    missing = [
        name
        for name, where in declared().items()
        if name not in locked[LOCKS.get(where, "requirements-dev.lock")]
    ]
    assert missing == []
