"""The simulated hypervisors' own memory of their guests: one SQLite file for all hosts of a process.

It outlives the agent, as guests outlive a compute service. It must not know verbs, tickets or the control plane.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import msgspec

from kilonova.bus.calls import GuestSpec
from kilonova.virt.driver import Held, Usage

_SCHEMA = """
CREATE TABLE IF NOT EXISTS guests (
    server TEXT NOT NULL, host TEXT NOT NULL, power_state INTEGER NOT NULL, boots INTEGER NOT NULL,
    vcpus INTEGER NOT NULL, memory_mb INTEGER NOT NULL, disk_gb INTEGER NOT NULL, started_at TEXT NOT NULL,
    spec BLOB NOT NULL, PRIMARY KEY (server, host)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS guests_host ON guests (host);
CREATE TABLE IF NOT EXISTS held (
    host TEXT NOT NULL, server TEXT NOT NULL, numa_topology TEXT NOT NULL, pci_devices TEXT NOT NULL,
    PRIMARY KEY (host, server)) WITHOUT ROWID;
"""
_COLUMNS = "server, host, power_state, boots, started_at, spec"
_USAGE = "SELECT host, count(*), sum(vcpus), sum(memory_mb), sum(disk_gb) FROM guests"
_ADD = "INSERT INTO guests VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
_CHUNK = 500  # names in one IN list, well below SQLite's limit of variables

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(GuestSpec).decode


@dataclass(frozen=True, slots=True)
class Guest:
    """A guest on a host. boots counts its starts; started_at is the text of the last one's time."""

    host: str
    spec: GuestSpec
    power_state: int
    boots: int
    started_at: str


class GuestStore:
    """Safe from any thread; each write is durable against the death of the process when it returns."""

    def __init__(self, path: str) -> None:
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))  # user data is in it
        self._lock = threading.Lock()
        self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=30)
        for pragma in ("journal_mode=WAL", "synchronous=NORMAL"):
            self._db.execute(f"PRAGMA {pragma}")
        self._db.executescript(_SCHEMA)

    def get(self, host: str, server: str) -> Guest | None:
        """The guest, if it is there."""
        sql = f"SELECT {_COLUMNS} FROM guests WHERE server = ? AND host = ?"
        with self._lock:
            row = self._db.execute(sql, (server, host)).fetchone()
        return None if row is None else _guest(row)

    def on(self, host: str) -> list[Guest]:
        """The guests of a host, ordered by id."""
        sql = f"SELECT {_COLUMNS} FROM guests WHERE host = ? ORDER BY server"
        with self._lock:
            rows = self._db.execute(sql, (host,)).fetchall()
        return [_guest(row) for row in rows]

    def add(self, guest: Guest) -> None:
        """A new guest."""
        spec = guest.spec
        row = (
            spec.uuid, guest.host, guest.power_state, guest.boots, spec.vcpus, spec.memory_mb, disk_gb(spec),
            guest.started_at, _encode(spec),
        )  # fmt: skip
        with self._lock:
            if not (spec.numa_topology or spec.pci_devices):
                self._db.execute(_ADD, row)
                return
            with self._together():
                self._db.execute(_ADD, row)
                held = (guest.host, spec.uuid, spec.numa_topology, ",".join(spec.pci_devices))
                self._db.execute("INSERT INTO held VALUES (?, ?, ?, ?)", held)

    def change(self, guest: Guest) -> None:
        """Write what may change of a guest: power, boots, and the disks and interfaces in its spec."""
        sql = "UPDATE guests SET power_state = ?, boots = ?, started_at = ?, spec = ? WHERE server = ? AND host = ?"
        values = (guest.power_state, guest.boots, guest.started_at, _encode(guest.spec), guest.spec.uuid, guest.host)
        with self._lock:
            self._db.execute(sql, values)

    def remove(self, host: str, server: str) -> bool:
        """False when it was not there."""
        with self._lock, self._together():
            self._db.execute("DELETE FROM held WHERE host = ? AND server = ?", (host, server))
            done = self._db.execute("DELETE FROM guests WHERE server = ? AND host = ?", (server, host))
            return done.rowcount > 0

    @contextmanager
    def _together(self) -> Iterator[None]:
        """All statements of the block or none; the lock is held."""
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    def held(self, hosts: Iterable[str]) -> dict[str, list[Held]]:
        """What the guests of these hosts have for themselves, ordered by server."""
        found: dict[str, list[Held]] = {}
        for chunk in _chunks(list(hosts)):
            sql = f"SELECT * FROM held WHERE host IN ({','.join('?' * len(chunk))}) ORDER BY host, server"
            with self._lock:
                rows = self._db.execute(sql, chunk).fetchall()
            for host, server, topology, devices in rows:
                found.setdefault(host, []).append(Held(server, topology, tuple(devices.split(",")) if devices else ()))
        return found

    def usage(self, hosts: Iterable[str]) -> dict[str, Usage]:
        """What the guests of these hosts hold; hosts without guests are left out."""
        found: dict[str, Usage] = {}
        for chunk in _chunks(list(hosts)):
            sql = f"{_USAGE} WHERE host IN ({','.join('?' * len(chunk))}) GROUP BY host"
            with self._lock:
                rows = self._db.execute(sql, chunk).fetchall()
            found.update((row[0], Usage(*row[1:])) for row in rows)
        return found

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._db.close()


def disk_gb(spec: GuestSpec) -> int:
    """Local disk in GiB: root, ephemeral, and swap rounded up."""
    return spec.root_gb + spec.ephemeral_gb + -(-spec.swap_mb // 1024)


def _guest(row: tuple[Any, ...]) -> Guest:
    _, host, power_state, boots, started_at, spec = row
    return Guest(host, _decode(spec), power_state, boots, started_at)


def _chunks(names: list[str]) -> Iterator[list[str]]:
    for start in range(0, len(names), _CHUNK):
        yield names[start : start + _CHUNK]
