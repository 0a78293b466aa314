"""How a service comes up: it waits for what is not there yet, and says in one sentence what will never do."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kilonova.cmd import process
from kilonova.conf.load import ConfigError
from kilonova.core.errors import Unavailable
from kilonova.sql.engine import Database


class Service:
    """A service whose start may fail."""

    base_url = "http://127.0.0.1:1"

    def __init__(self, fails: Callable[[], None] = lambda: None) -> None:
        self.state, self._fails = "built", fails

    def start(self) -> None:
        self.state = "started"
        self._fails()

    def stop(self) -> None:
        self.state = "stopped"


class Row:
    """Builds one service after the other; what is an exception is raised instead."""

    def __init__(self, *outcomes: Service | Exception) -> None:
        self.outcomes = list(outcomes)

    def __call__(self, _conf: Any) -> Any:
        outcome = self.outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "_AGAIN_AFTER", 0.0)


def start(build: Row, stopped: threading.Event | None = None) -> Any:
    return process._started("api", None, build, stopped or threading.Event())


def database_away(tmp_path: Path) -> None:
    with Database(f"sqlite:///{tmp_path}/no/x.db").read():
        pass


def test_what_does_not_answer_yet_is_waited_for_and_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = Service(lambda: database_away(tmp_path))
    last = Service()
    assert start(Row(Unavailable("The broker is away."), first, last)) is last
    assert (first.state, last.state) == ("stopped", "started")
    assert capsys.readouterr().out.splitlines() == [
        "kilonova api waits: The broker is away.",
        "kilonova api waits: The database does not answer: unable to open database file.",
    ]


def test_who_is_told_to_stop_waits_no_longer() -> None:
    stopped = threading.Event()

    def away() -> None:
        stopped.set()
        raise Unavailable("Nobody is there.")

    assert start(Row(Service(away)), stopped) is None


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (ConfigError("transport_url is wrong"), process.BadConfiguration, "transport_url is wrong"),
        (RuntimeError("a defect"), RuntimeError, "a defect"),
    ],
)
def test_what_waiting_does_not_mend_is_said_at_once(error: Exception, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        start(Row(error, Service()))


def test_an_address_that_is_taken_is_named_and_the_service_stopped() -> None:
    def taken() -> None:
        raise OSError(98, "Address already in use")

    service = Service(taken)
    with pytest.raises(process.AddressUnusable, match=r"at http://127.0.0.1:1: address already in use"):
        start(Row(service))
    assert service.state == "stopped"


def test_a_service_that_can_reads_again_each_time_it_is_asked_to(caplog: pytest.LogCaptureFixture) -> None:
    asked, done = threading.Event(), threading.Semaphore(0)
    fails = [True, False]

    def reload() -> None:
        done.release()
        if fails.pop(0):
            raise RuntimeError("the database is away")

    threading.Thread(target=process.reloading, args=(reload, asked), daemon=True).start()
    for _ in range(2):
        asked.set()
        assert done.acquire(timeout=10), "the one that failed did not end it"


SERVICE = """
import argparse, sys
from kilonova.cmd import process
from kilonova.wiring import parts
reload = (lambda: print("again", flush=True)) if sys.argv[1] == "reloads" else None
made = lambda _conf: parts.process([], [], reload)
sys.exit(process.run("scheduler", argparse.Namespace(config_file=[]), made, reloads=reload is not None))
"""


@pytest.mark.parametrize(("kind", "said", "code"), [("reloads", "again", 0), ("other", "", -signal.SIGHUP)])
def test_sighup_makes_those_read_again_that_can_and_ends_the_others(kind: str, said: str, code: int) -> None:
    command = [sys.executable, "-c", SERVICE, kind]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as made:
        assert made.stdout is not None
        assert made.stdout.readline().startswith("ready: ")
        made.send_signal(signal.SIGHUP)
        assert made.stdout.readline().strip() == said
        made.terminate()
        assert made.wait(20) == code
