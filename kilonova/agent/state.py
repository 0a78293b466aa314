"""What an agent must know after a restart: its epoch, the fencing epochs, finished verbs, what it has told others.

One SQLite file in the state directory. It knows no driver and no bus; guests are the hypervisor's own business.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterable, Mapping
from datetime import UTC
from pathlib import Path
from typing import Literal

import msgspec

from kilonova.bus.calls import Ticket, VerbReport
from kilonova.core import clock, ids

KEPT_VERBS = 20_000  # results and fencing epochs kept; a workflow that may still ask is far younger than the oldest

_SCHEMA = """
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS fences (number INTEGER PRIMARY KEY AUTOINCREMENT, server TEXT NOT NULL,
    workflow TEXT NOT NULL, epoch INTEGER NOT NULL, UNIQUE (server, workflow));
CREATE TABLE IF NOT EXISTS verbs (number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE,
    report BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS prints (kind TEXT NOT NULL, host TEXT NOT NULL, print BLOB NOT NULL,
    PRIMARY KEY (kind, host)) WITHOUT ROWID;
"""
_FENCE = (
    "INSERT INTO fences (server, workflow, epoch) VALUES (?, ?, ?) "
    "ON CONFLICT (server, workflow) DO UPDATE SET epoch = excluded.epoch"
)
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(VerbReport).decode

Kind = Literal["report", "provider"]


class AgentState:
    """The file `agent.db` in a directory. Safe from any thread; a write has outlived the process when it returns."""

    def __init__(self, directory: str | Path) -> None:
        path = Path(directory) / "agent.db"
        path.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
        self._lock = threading.Lock()
        self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=30)
        for pragma in ("journal_mode=WAL", "synchronous=NORMAL"):
            self._db.execute(f"PRAGMA {pragma}")
        self._db.executescript(_SCHEMA)

    def begin(self) -> int:
        """The epoch of this start: higher than that of every start before, also when the file was lost."""
        epoch = max(int(self.fact("epoch") or 0) + 1, int(clock.utcnow().replace(tzinfo=UTC).timestamp()))
        self.keep_fact("epoch", str(epoch))
        return epoch

    def identity(self, prefix: str) -> str:
        """The agent's id, made once: the prefix and eight random hex digits."""
        known = self.fact("agent_id")
        if known is None:
            known = f"{prefix}-{ids.new_hex()[:8]}"
            self.keep_fact("agent_id", known)
        return known

    def fact(self, name: str) -> str | None:
        """A remembered value."""
        with self._lock:
            row = self._db.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
        return None if row is None else str(row[0])

    def keep_fact(self, name: str, value: str) -> None:
        """Remember a value."""
        with self._lock:
            self._db.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (name, value))

    # -- fencing and finished verbs

    def admit(self, ticket: Ticket) -> bool:
        """Whether the ticket is as new as any seen for its server and workflow; a newer epoch is remembered."""
        with self._lock:
            newest = self._newest(ticket)
            if ticket.epoch > newest:
                self._db.execute(_FENCE, (ticket.server, ticket.workflow, ticket.epoch))
        return ticket.epoch >= newest

    def stale(self, ticket: Ticket) -> bool:
        """Whether a newer epoch has been seen since the ticket was admitted."""
        with self._lock:
            return ticket.epoch < self._newest(ticket)

    def _newest(self, ticket: Ticket) -> int:
        # epochs belong to workflows: a server's next workflow begins low again, so both are the key
        sql = "SELECT epoch FROM fences WHERE server = ? AND workflow = ?"
        row = self._db.execute(sql, (ticket.server, ticket.workflow)).fetchone()
        return -1 if row is None else int(row[0])

    def result(self, verb_id: str) -> VerbReport | None:
        """How a verb ended, if it did and is not forgotten."""
        with self._lock:
            row = self._db.execute("SELECT report FROM verbs WHERE id = ?", (verb_id,)).fetchone()
        return None if row is None else _decode(row[0])

    def keep_result(self, report: VerbReport) -> None:
        """Remember how a verb ended."""
        with self._lock:
            sql = "INSERT OR REPLACE INTO verbs (id, report) VALUES (?, ?)"
            self._db.execute(sql, (report.ticket.id, _encode(report)))

    def prune(self, keep: int = KEPT_VERBS) -> None:
        """Forget all but the newest `keep` results and fencing epochs."""
        with self._lock:
            for table in ("verbs", "fences"):
                self._db.execute(f"DELETE FROM {table} WHERE number <= (SELECT max(number) FROM {table}) - ?", (keep,))

    # -- what others have been told

    def prints(self, kind: Kind) -> dict[str, bytes]:
        """Per host the fingerprint of what was last told and taken."""
        with self._lock:
            return dict(self._db.execute("SELECT host, print FROM prints WHERE kind = ?", (kind,)).fetchall())

    def keep_prints(self, kind: Kind, prints: Mapping[str, bytes]) -> None:
        """Remember fingerprints."""
        with self._lock:
            self._db.execute("BEGIN IMMEDIATE")
            rows = [(kind, host, value) for host, value in prints.items()]
            self._db.executemany("INSERT OR REPLACE INTO prints VALUES (?, ?, ?)", rows)
            self._db.execute("COMMIT")

    def forget_prints(self, kind: Kind, hosts: Iterable[str]) -> None:
        """Forget fingerprints, so that these hosts are told again."""
        with self._lock:
            self._db.execute("BEGIN IMMEDIATE")
            self._db.executemany("DELETE FROM prints WHERE kind = ? AND host = ?", [(kind, host) for host in hosts])
            self._db.execute("COMMIT")

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._db.close()


def agent_identity(directory: str | Path, prefix: str) -> str:
    """The id of the agent of a state directory, the same at every start; give it to `service.Agent`."""
    state = AgentState(directory)
    try:
        return state.identity(prefix)
    finally:
        state.close()
