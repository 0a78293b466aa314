"""Write a migration: compare the table definitions with what the revisions lead to, and put the difference in a file.

    python -m tools.migration api "servers have a colour"      the next revision of the API database
    python -m tools.migration cell --initial                   the first revision anew (before the first release only)

What it writes is a draft: read it, and try it with `make test ARGS=tests/unit/sql`.
"""

from __future__ import annotations

import argparse
import importlib
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from alembic import command
from alembic.config import Config

from kilonova.sql import migrate
from kilonova.sql.engine import Database

DATABASES = {
    "api": "kilonova.db.migrations.api",
    "cell": "kilonova.db.migrations.cell",
    "placement": "kilonova.placement.store.migrations",
}


def write_revision(scripts: str, message: str) -> Path:
    """Write the revision that leads from the newest one to the table definitions; answers its path."""
    folder = Path(str(importlib.import_module(scripts).__file__)).parent
    known = migrate.revisions(scripts)
    number = f"{int(known[-1]) + 1 if known else 1:04d}"
    name = re.sub(r"[^a-z0-9]+", "_", message.lower()).strip("_")[:40]
    with tempfile.TemporaryDirectory() as scratch:
        database = Database(f"sqlite:///{scratch}/scratch.sqlite")
        if known:
            migrate.upgrade(database, scripts)
        with database.write() as connection:
            config = Config(attributes={"connection": connection})
            config.set_main_option("script_location", str(folder))
            config.set_main_option("file_template", f"{number}_{name}")
            template = folder / "script.py.mako"  # alembic looks for it beside the revisions
            template.write_text(Path(__file__).with_name("script.py.mako").read_text())
            try:
                command.revision(config, message, autogenerate=True, rev_id=number)
            finally:
                template.unlink()
        database.dispose()
    path = folder / "versions" / f"{number}_{name}.py"
    path.write_text(re.sub(r"\n *# ###.*", "", path.read_text()))
    for step in (("check", "-q", "--select", "I", "--fix"), ("format", "-q")):
        subprocess.run([sys.executable, "-m", "ruff", *step, str(path)], check=True)
    return path


def main() -> None:
    """Write one revision and say where it is."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("database", choices=DATABASES)
    parser.add_argument("message", nargs="?", help="what changes, in a sentence")
    parser.add_argument("--initial", action="store_true", help="replace all revisions by one that makes every table")
    arguments = parser.parse_args()
    if not arguments.initial and not arguments.message:
        parser.error("say what changes")
    scripts = DATABASES[arguments.database]
    if arguments.initial:
        folder = Path(str(importlib.import_module(scripts).__file__)).parent
        for path in (folder / "versions").glob("[0-9]*_*.py"):
            path.unlink()
    print(write_revision(scripts, arguments.message or "initial"))


if __name__ == "__main__":
    main()
