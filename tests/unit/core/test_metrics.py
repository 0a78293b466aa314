"""Numbers are kept from the first on, whoever looks when; without anybody looking, nothing is imported."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from kilonova.core.metrics import DIRECTORY, Meters, Metric, MetricsDirectoryMissing
from kilonova.http.transport import WsgiTransport

EGGS = Metric("eggs_total", "counter", "Eggs.", ("colour",))
WAIT = Metric("wait_seconds", "histogram", "Seconds of waiting.", buckets=(0.1, 1.0))
HENS = Metric("hens", "gauge", "Hens.")
ROWS = (EGGS, WAIT, HENS)


def look(meters: Any) -> dict[tuple[str, str], float]:
    """(name, values of labels but the process's) to value of every sample."""
    status, _, body = WsgiTransport(meters).send("GET", "http://h/metrics", {}, None)
    assert status == 200
    return values(body.decode())


def values(text: str) -> dict[tuple[str, str], float]:
    return {
        (sample.name, " ".join(value for name, value in sample.labels.items() if name != "pid")): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_what_was_recorded_before_somebody_looked_is_there() -> None:
    meters = Meters(ROWS)
    meters.record(EGGS, 2, "white")
    meters.record(WAIT, 0.5)
    first = look(meters)
    meters.record(EGGS, 1, "white")
    meters.record(EGGS, 1, "brown")
    second = look(meters)
    assert (first["eggs_total", "white"], second["eggs_total", "white"], second["eggs_total", "brown"]) == (2, 3, 1)
    assert (first["wait_seconds_bucket", "0.1"], first["wait_seconds_bucket", "1.0"]) == (0, 1)
    assert (first["wait_seconds_count", ""], first["wait_seconds_sum", ""]) == (1, 0.5)


def test_a_metric_without_labels_is_there_before_anything_happens() -> None:
    assert look(Meters(ROWS))["wait_seconds_count", ""] == 0


def test_gauges_are_read_when_somebody_looks() -> None:
    meters, hens = Meters(ROWS), [1.0]
    meters.watch(lambda: [(HENS, hens[0])])
    assert look(meters)["hens", ""] == 1
    hens[0] = 7
    assert look(meters)["hens", ""] == 7


def test_meters_of_one_process_do_not_see_each_other() -> None:
    one, other = Meters(ROWS), Meters(ROWS)
    one.record(WAIT, 0.1)
    assert (look(one)["wait_seconds_count", ""], look(other)["wait_seconds_count", ""]) == (1, 0)


def test_threads_lose_nothing_whenever_the_first_look_comes() -> None:
    meters, begin = Meters(ROWS), threading.Barrier(5)

    def lay() -> None:
        begin.wait(10)
        for _ in range(2000):
            meters.record(EGGS, 1, "white")

    threads = [threading.Thread(target=lay) for _ in range(4)]
    for thread in threads:
        thread.start()
    begin.wait(10)
    look(meters)
    for thread in threads:
        thread.join()
    assert look(meters)["eggs_total", "white"] == 8000


LAZY = """
import sys
from kilonova.core.metrics import Meters, Metric
eggs = Metric("eggs_total", "counter", "Eggs.")
meters = Meters((eggs,), on={on})
for _ in range({count}):
    meters.record(eggs)
print("prometheus_client" in sys.modules)
"""


def run(code: str, **environ: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60,
                          env={**os.environ, "PYTHONPATH": ".", **environ})  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize(("on", "count", "imported"), [(True, 100, False), (True, 5000, True), (False, 5000, False)])
def test_the_library_is_imported_when_numbers_have_piled_up(on: bool, count: int, imported: bool) -> None:
    assert run(LAZY.format(on=on, count=count)) == str(imported)


AMONG_OTHERS = """
from tests.unit.core.test_metrics import *
meters = Meters(ROWS)
meters.watch(lambda: [(HENS, {hens})])
for _ in range({eggs}):
    meters.record(EGGS, 1, "white")
    meters.record(WAIT, 0.5)
if {looks}:
    print(WsgiTransport(meters).send("GET", "http://h/metrics", {{}}, None)[2].decode())
"""


def test_any_of_several_processes_answers_for_all(tmp_path: Path) -> None:
    where = {DIRECTORY: str(tmp_path)}
    run(AMONG_OTHERS.format(hens=3, eggs=2, looks=False), **where)
    text = run(AMONG_OTHERS.format(hens=4, eggs=5, looks=True), **where)
    found = values(text)
    assert found["eggs_total", "white"] == found["wait_seconds_count", ""] == found["wait_seconds_bucket", "1.0"] == 7
    hens = [sample for family in text_string_to_metric_families(text) if family.name == "hens"
            for sample in family.samples]  # fmt: skip
    assert sorted(sample.value for sample in hens) == [3, 4]
    assert len({sample.labels["pid"] for sample in hens}) == 2


def test_a_directory_that_is_not_there_is_said_at_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DIRECTORY, str(tmp_path / "none"))
    with pytest.raises(MetricsDirectoryMissing, match="none"):
        Meters(ROWS)
