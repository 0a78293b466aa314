"""Hosts whose clocks are ten minutes off, each its way: the log says so, nobody is seen as down."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.deploy.load import Load
from tests.deploy.people import People, clear, quiet
from tests.http.compute.cloud import until

FAKETIME = next(iter(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1")), None)
OFF = {"api": -600, "placement": 600, "conductor": 600, "scheduler": -600, "agent": 600}
"""Seconds by kind of process; service_down_time is 60."""
SAID_WITHIN = 30.0


@pytest.fixture
def skewed(people: People) -> Iterator[People]:
    """The first process of each kind has a wrong clock; afterwards a right one."""
    if FAKETIME is None:
        pytest.skip("libfaketime is not installed")
    victims = {kind: people.made.processes[f"{kind}-1"] for kind in OFF}

    def restart(wrong: bool) -> None:
        for process in victims.values():
            process.terminate()
        for process in victims.values():
            process.ends()
        for kind, process in victims.items():
            lies = {"LD_PRELOAD": str(FAKETIME), "FAKETIME": f"{OFF[kind]:+}", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
            process.start(**lies if wrong else {})
        for process in victims.values():
            process.says("ready: ")

    restart(wrong=True)
    yield people
    restart(wrong=False)


def down(people: People) -> list[dict[str, Any]]:
    """Services that are not up; asked twice, so that either API process answers."""
    found = [row for _ in range(2) for row in people.admin.get("/os-services")["services"]]
    return [row for row in found if row["state"] != "up"]


@pytest.mark.parametrize("people", ["mariadb"], indirect=True)
def test_clocks_that_differ_are_said_and_harm_nobody(skewed: People) -> None:
    until(lambda: not down(skewed), SAID_WITHIN)
    for kind, seconds in OFF.items():
        log = skewed.made.directory / "log" / f"kilonova-{kind}.log"
        way = "ahead of" if seconds > 0 else "behind"
        until(lambda log=log, way=way: f"seconds {way} the" in log.read_text(), SAID_WITHIN)  # type: ignore[misc]
        line = next(line for line in log.read_text().splitlines() if f"seconds {way} the" in line)
        assert "The clock of this host is " in line
        assert 595 < float(line.split("this host is ")[1].split()[0]) < 605
    load = Load(skewed, 20)
    load.start()
    for _ in range(12):  # more than a beat
        assert down(skewed) == []
        time.sleep(1)
    load.end()
    quiet(skewed)
    clear(skewed)
