"""What a scheduling decision costs: decoded request spec to the claim's 204, with our Placement in the same process.

`python -m benchmarks.scheduler --hosts 1000 10000` prints a table: per number of hosts and kind of request the median
and 95th percentile of one decision in milliseconds, its CPU time, what the stages take, and decisions in a second where
a hundred servers are asked for at once. `--json` prints all figures.
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
import tempfile
import time
import tracemalloc
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.scheduler.world import Kind, Region, kinds, region
from kilonova.bus.calls import SelectDestinations
from kilonova.core import ids
from kilonova.core.context import Context
from kilonova.scheduler.host_store import HostStore
from kilonova.scheduler.service import Scheduler
from kilonova.scheduler.settings import SchedulerSettings

BATCH = 100
DOWN_AFTER = 86400
"""Seconds: the hosts never beat, and filling a region with a hundred thousand takes minutes."""
TARGETS = {1000: "≤ 10 ms", 10000: "≤ 25 ms"}
COLUMNS = ("hosts", "kind", "p50 ms", "p95 ms", "CPU ms", "target", "batch /s", "batch CPU /s", "stages of one (ms)")


def measure(made: Region, kind: Kind, decisions: int) -> dict[str, Any]:
    """One kind of request, after a first that reads all hosts. Claims stay, as they do in a cloud."""
    scheduler = Scheduler(made.cloud, made.client, SchedulerSettings(service_down_time=DOWN_AFTER, **kind.options))

    def decide(servers: int) -> tuple[float, float]:
        asked = SelectDestinations(kind.spec(), tuple(ids.new_uuid() for _ in range(servers)))
        gc.collect()
        wall, cpu = time.perf_counter(), time.process_time()
        scheduler.select_destinations(Context(overwrite=False), asked)
        return (time.perf_counter() - wall) * 1000, (time.process_time() - cpu) * 1000

    first = decide(1)[0]
    decide(1)
    single = [decide(1) for _ in range(decisions)]
    walls = sorted(wall for wall, _ in single)
    seconds = scheduler.traces.newest()[0].seconds
    result = {
        "first_ms": round(first, 1),
        "p50_ms": round(median(walls), 2),
        "p95_ms": round(walls[int(len(walls) * 0.95)], 2),
        "cpu_ms": round(median(cpu for _, cpu in single), 2),
        "stages": {name: round(spent * 1000, 2) for name, spent in seconds.items()},
    }
    if not kind.spec().group:  # a group of a hundred kept apart is another question
        rounds = [decide(BATCH) for _ in range(max(3, decisions // 10))]
        result["batch_per_s"] = round(BATCH * 1000 / median(wall for wall, _ in rounds))
        result["batch_cpu_per_s"] = round(BATCH * 1000 / median(cpu for _, cpu in rounds))
        seconds = scheduler.traces.newest()[0].seconds
        result["batch_stages"] = {name: round(spent * 1000, 2) for name, spent in seconds.items()}
    return result


def bytes_per_host(made: Region, hosts: int) -> int:
    """Memory that the snapshot of all hosts takes, by host."""
    store = HostStore(made.cloud)
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    snapshot = store.snapshot()
    gc.collect()
    taken = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert len(snapshot.hosts) == hosts
    return taken // hosts


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, nargs="+", default=[1000, 10000])
    parser.add_argument("--kinds", choices=tuple(kinds()), nargs="+", default=tuple(kinds()))
    parser.add_argument("--decisions", type=int, default=50)
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    figures: dict[str, Any] = {}
    for hosts in chosen.hosts:
        with tempfile.TemporaryDirectory() as directory:
            made = region(Path(directory), hosts)
            figures[str(hosts)] = {name: measure(made, kinds()[name], chosen.decisions) for name in chosen.kinds}
            figures[str(hosts)]["bytes_per_host"] = bytes_per_host(made, hosts)
            made.close()
    sys.stdout.write((json.dumps(figures) if chosen.json else table(figures)) + "\n")


def table(figures: dict[str, Any]) -> str:
    """A Markdown table."""
    rows: list[tuple[str, ...]] = [COLUMNS, ("---",) * len(COLUMNS)]
    for hosts, by_kind in figures.items():
        for kind, row in by_kind.items():
            if kind == "bytes_per_host":
                rows.append((hosts, "memory", f"{row} bytes a host", "", "", "≤ 2048", "", "", ""))
                continue
            stages = ", ".join(f"{name} {spent}" for name, spent in row["stages"].items())
            rows.append((
                hosts, kind, str(row["p50_ms"]), str(row["p95_ms"]), str(row["cpu_ms"]), TARGETS.get(int(hosts), ""),
                str(row.get("batch_per_s", "")), str(row.get("batch_cpu_per_s", "")), stages,
            ))  # fmt: skip
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


if __name__ == "__main__":
    main()
