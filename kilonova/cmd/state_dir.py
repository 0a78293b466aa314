"""The state directory of a cloud in one process: where it is, who may use it, what it remembers between starts.

    lock          held (flock) as long as a process uses the directory
    state.json    format of the directory, program that wrote it, and what the first start was asked for
    secrets.json  generated passwords, for the owner only
    process.json  pid and address of the process that runs, while it runs
    clouds.yaml   openrc      for clients, for the owner only
    client        an environment with the openstack command, where `up` said how to make one; not the cloud's, so kept
    everything else belongs to `wiring`

Nothing is written before the lock is held, and nothing at all to a directory that something else made.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kilonova import __version__
from kilonova.conf.all_in_one import Secrets
from kilonova.core import clock, errors, ids

FORMAT = 1
"""Raised when an older program could no longer use what a newer one wrote."""

CLIENT = "client"
_NOT_THE_CLOUDS = frozenset(("lock", CLIENT))


class StateDirUnusable(errors.Unavailable):
    code, message = "state_dir_unusable", "The state directory {path} cannot be used: {reason}."


class StateDirInUse(errors.Conflict):
    code = "state_dir_in_use"
    message = (
        "The state directory {path} is in use{by}: stop that cloud with `kilonova down`,"
        " or choose another directory with --state-dir."
    )


class StateDirNewer(errors.Conflict):
    code = "state_dir_newer"
    message = (
        "The state directory {path} was written by Kilonova {program}, which is newer than this one ({ours}):"
        " use that version, or choose another directory with --state-dir."
    )


class StateDirForeign(errors.Conflict):
    code = "state_dir_foreign"
    message = "{path} has files in it but no Kilonova state: choose an empty directory with --state-dir."


@dataclass(frozen=True)
class StateDir:
    """A state directory that this process holds."""

    path: Path
    lock: int

    def read(self, name: str) -> dict[str, Any] | None:
        """A JSON file of the directory, or None when there is none."""
        return _read_json(self.path, name)

    def write(self, name: str, document: dict[str, Any]) -> None:
        """Write a JSON file that only the owner may read, whole or not at all."""
        write_private(self.path / name, json.dumps(document, indent=2) + "\n")

    def remove(self, name: str) -> None:
        """Remove a file of the directory if it is there."""
        (self.path / name).unlink(missing_ok=True)

    def __enter__(self) -> StateDir:
        return self

    def __exit__(self, *_: object) -> None:
        """Give the directory back."""
        os.close(self.lock)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the option that names the directory."""
    text = "where the cloud is kept (default: kilonova in your data directory)"
    parser.add_argument("--state-dir", type=Path, metavar="DIR", help=text)


def chosen(arguments: argparse.Namespace) -> Path:
    """The directory that the option names, or the usual one."""
    path: Path = arguments.state_dir or default_path()
    return path.absolute()


def default_path() -> Path:
    """`kilonova` in the user's data directory (XDG base directory specification)."""
    data = os.environ.get("XDG_DATA_HOME", "")
    try:
        return (Path(data) if os.path.isabs(data) else Path.home() / ".local" / "share") / "kilonova"
    except RuntimeError as error:  # no home directory to be found
        reason = "there is no home directory, so name one with --state-dir"
        raise StateDirUnusable(path="of this user", reason=reason) from error


def hold(path: Path, *, fresh: bool = False) -> StateDir:
    """Take the directory for this process, make it when it is not there, empty it first when `fresh`.

    Raises StateDirInUse, StateDirNewer, StateDirForeign, StateDirUnusable; the directory is then as it was.
    """
    try:
        _refuse_foreign(path)
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StateDirUnusable(path=str(path), reason=_reason(error)) from error
    try:
        _take(path, lock)
        if fresh:
            _empty(path)
        _check_format(path)
        directory = StateDir(path, lock)
        directory.remove("process.json")  # left by a process that was killed
        known = directory.read("state.json") or {}
        if known.get("program") != __version__:
            directory.write("state.json", known | {"format": FORMAT, "program": __version__})
    except OSError as error:
        os.close(lock)
        raise StateDirUnusable(path=str(path), reason=_reason(error)) from error
    except BaseException:
        os.close(lock)
        raise
    return directory


def running(path: Path) -> dict[str, Any] | None:
    """What the process that holds the directory says of itself (pid, url …); None when no process holds it.

    Empty as long as that process has not come up.
    """
    try:
        lock = os.open(path / "lock", os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StateDirUnusable(path=str(path), reason=_reason(error)) from error
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _read_json(path, "process.json") or {}
    finally:
        os.close(lock)
    return None


def secrets(directory: StateDir, *, admin_password: str | None) -> Secrets:
    """The passwords of this cloud: those kept, new ones for what is missing, the admin's as asked for."""
    known = directory.read("secrets.json") or {}
    names = ("admin_password", "demo_password", "alt_demo_password", "service_password", "metadata_secret")
    wanted = {name: known.get(name) or ids.new_password(20) for name in names}
    if admin_password is not None:
        wanted["admin_password"] = admin_password
    if wanted != known:
        directory.write("secrets.json", wanted)
    return Secrets(**wanted)


def write_private(path: Path, text: str) -> None:
    """Write a file that only the owner may read, whole or not at all."""
    draft = path.with_name(f".{path.name}.new")
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)


def _take(path: Path, lock: int) -> None:
    for _ in range(3):  # `kilonova status` holds it for a moment
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            clock.sleep(0.1)
    process = _read_json(path, "process.json") or {}
    by = f" by process {process['pid']} at {process['url']}" if process.keys() >= {"pid", "url"} else ""
    raise StateDirInUse(path=str(path), by=by)


def _refuse_foreign(path: Path) -> None:
    if path.is_dir() and not (path / "state.json").exists() and {entry.name for entry in path.iterdir()} - {"lock"}:
        raise StateDirForeign(path=str(path))


def _check_format(path: Path) -> None:
    known = _read_json(path, "state.json")
    if known is not None and int(known.get("format", 0)) > FORMAT:
        raise StateDirNewer(path=str(path), program=known.get("program", "?"), ours=__version__)


def _empty(path: Path) -> None:
    """Remove the cloud's own; the stamp last, so that what is half emptied is still known as ours."""
    for entry in sorted(path.iterdir(), key=lambda entry: entry.name == "state.json"):
        if entry.name in _NOT_THE_CLOUDS:
            continue
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()


def _read_json(path: Path, name: str) -> dict[str, Any] | None:
    try:
        document = json.loads((path / name).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise StateDirUnusable(path=str(path), reason=f"{name} is damaged ({error})") from error
    if not isinstance(document, dict):
        raise StateDirUnusable(path=str(path), reason=f"{name} is damaged (it is not an object)")
    return document


def _reason(error: OSError) -> str:
    text = (error.strerror or str(error)).lower()
    return f"{text} ({error.filename})" if error.filename else text
