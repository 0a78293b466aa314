"""What a whole cloud costs, measured through its HTTP API in one run: Kilonova and, where given, a peer beside it.

`python -m benchmarks.cloud` starts Kilonova in a temporary directory; `--peer-openrc FILE` measures a cloud that runs
already the same way and prints ratios. Clients are processes, so that their interpreter is not what is measured.
`foreign` is how many cores were busy with something else meanwhile: where it is not near 0, compare CPU, not seconds.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

from benchmarks import process, report
from benchmarks.target import Api, Refused, Target, busy_cores, log_in, openrc, pids_in

Figures = dict[str, Any]
T = TypeVar("T")
PATIENCE = 300.0  # seconds for a batch to become ACTIVE, or to go


# -- measuring ------------------------------------------------------------------------------------------------------


class Metered(Protocol):
    """Something whose processes use CPU."""

    def cpu(self) -> float: ...


@contextmanager
def metered(target: Metered) -> Iterator[Figures]:
    """Afterwards: seconds that passed, CPU seconds of the target, and cores busy with anything but it and us."""
    figures: Figures = {}
    before, cpu, ours = busy_cores()[0], target.cpu(), _our_cpu()
    started = time.perf_counter()
    yield figures
    figures["seconds"] = time.perf_counter() - started
    figures["cpu"] = target.cpu() - cpu
    rest = busy_cores()[0] - before - figures["cpu"] - (_our_cpu() - ours)
    figures["foreign"] = round(max(0.0, rest) / figures["seconds"], 2)


def _our_cpu() -> float:
    times = os.times()
    return float(sum(times[:4]))


def together(clients: int, work: Callable[[int], list[T]]) -> list[T]:
    """`work(number)` in so many processes at once; what all of them measured."""
    if clients == 1:
        return work(0)
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()

    def run(number: int) -> None:
        try:
            queue.put(work(number))
        except Exception as error:
            queue.put(repr(error))

    children = [context.Process(target=run, args=(number,), daemon=True) for number in range(clients)]
    for child in children:
        child.start()
    answers = [queue.get() for _ in children]
    for child in children:
        child.join()
    for answer in answers:
        if isinstance(answer, str):
            raise RuntimeError(answer)
    return [one for answer in answers for one in answer]


def percentile(values: list[float], percent: int, digits: int = 1) -> float:
    """The value in milliseconds that so many percent do not exceed."""
    ordered = sorted(values)
    return round(ordered[min(len(ordered) - 1, len(ordered) * percent // 100)] * 1000, digits)


# -- servers --------------------------------------------------------------------------------------------------------


def boot(api: Api, target: Target, name: str, count: int = 1, networks: Any = "none") -> str:
    """POST /servers; the id of the (first) server."""
    server: Figures = {"name": name, "flavorRef": target.flavor, "imageRef": target.image, "networks": networks}
    if count > 1:
        server |= {"min_count": count, "max_count": count}
    return str(api.call("POST", "/servers", {"server": server})["server"]["id"])


def listed(api: Api, query: str) -> list[str]:
    """The ids of the servers that match, 1,000 at most."""
    return [server["id"] for server in api.call("GET", f"/servers?limit=1000&{query}")["servers"]]


def until(fulfilled: Callable[[], bool], shortest: float = 0.005) -> float:
    """Ask until it is so, with pauses of nine times what asking takes; how many seconds that took."""
    started = time.perf_counter()
    while True:
        asked = time.perf_counter()
        if fulfilled():
            return time.perf_counter() - started
        if asked - started > PATIENCE:
            raise TimeoutError("the servers are not as they should be")
        time.sleep(min(2.0, max(shortest, 9 * (time.perf_counter() - asked))))


def until_active(api: Api, prefix: str, count: int) -> None:
    """Wait until so many servers of the name are ACTIVE. RuntimeError when one is in ERROR."""

    def fulfilled() -> bool:
        if len(listed(api, f"name={prefix}&status=ACTIVE")) >= count:
            return True
        if listed(api, f"name={prefix}&status=ERROR"):
            raise RuntimeError(f"a server of {prefix} is in ERROR")
        return False

    until(fulfilled)


def _active(api: Api, server: str) -> bool:
    return bool(api.call("GET", f"/servers/{server}")["server"]["status"] == "ACTIVE")


def _gone(api: Api, server: str) -> bool:
    return api.send("GET", f"/servers/{server}")[0] == 404


def _none_of(api: Api, prefix: str, servers: frozenset[str]) -> bool:
    return not servers & set(listed(api, f"name={prefix}"))


def remove(target: Target, prefix: str, clients: int) -> Figures:
    """Delete every server of the name, from so many clients, until none is listed."""
    api = target.compute()
    gone = 0
    total: Figures = {"seconds": 0.0, "cpu": 0.0, "foreign": 0.0}
    while found := listed(api, f"name={prefix}"):
        gone += len(found)

        def work(number: int, found: list[str] = found) -> list[float]:
            own, spent = target.compute(), []
            for server in found[number::clients]:
                started = time.perf_counter()
                status, _, body = own.send("DELETE", f"/servers/{server}")
                if status not in (204, 404):
                    raise Refused(f"DELETE {server}: {status} {body[:300]!r}")
                spent.append(time.perf_counter() - started)
            return spent

        with metered(target) as meter:
            together(clients, work)
            until(partial(_none_of, api, prefix, frozenset(found)))
        total = {key: total[key] + meter[key] for key in ("seconds", "cpu")} | {"foreign": meter["foreign"]}
    if not gone:
        return {}
    return {"delete_per_s": round(gone / total["seconds"], 1), "delete_cpu_ms": round(total["cpu"] / gone * 1000, 1),
            "foreign": total["foreign"]}  # fmt: skip


# -- sections -------------------------------------------------------------------------------------------------------


def idle(target: Target, seconds: float) -> Figures:
    """Resident memory, and CPU when nobody asks for anything."""
    with metered(target) as meter:
        time.sleep(seconds)
    used = meter["cpu"] / meter["seconds"] * 100
    return {"idle_cpu_percent": round(used, 2), "rss_mb": round(target.rss()), "foreign": meter["foreign"]}


def single(target: Target, count: int, networks: Any) -> Figures:
    """One server at a time, from one client: POST, until ACTIVE, DELETE, until it is gone."""
    api = target.compute()
    post: list[float] = []
    active: list[float] = []
    gone: list[float] = []
    for number in range(count + 2):
        started = time.perf_counter()
        server = boot(api, target, f"single-{number}", networks=networks)
        answered = time.perf_counter()
        until(partial(_active, api, server))
        running = time.perf_counter()
        api.send("DELETE", f"/servers/{server}")
        until(partial(_gone, api, server))
        if number >= 2:  # the first ones warm caches
            post.append(answered - started)
            active.append(running - started)
            gone.append(time.perf_counter() - running)
    return {"post_p50_ms": percentile(post, 50), "post_p99_ms": percentile(post, 99),
            "active_p50_ms": percentile(active, 50), "gone_p50_ms": percentile(gone, 50)}  # fmt: skip


def burst(target: Target, count: int, clients: int, networks: Any) -> Figures:
    """So many servers, one POST each, until all are ACTIVE; then all are deleted."""
    prefix = f"burst{clients}"

    def work(number: int) -> list[float]:
        api, spent = target.compute(), []
        for index in range(number, count, clients):
            started = time.perf_counter()
            boot(api, target, f"{prefix}-{index}", networks=networks)
            spent.append(time.perf_counter() - started)
        return spent

    with metered(target) as meter:
        post = together(clients, work)
        until_active(target.compute(), prefix, count)
    made = {
        "per_s": round(count / meter["seconds"], 1), "cpu_ms": round(meter["cpu"] / count * 1000, 1),
        "post_p50_ms": percentile(post, 50), "post_p99_ms": percentile(post, 99), "foreign": meter["foreign"],
    }  # fmt: skip
    deleted = remove(target, prefix, clients)
    return deleted | made


def multi(target: Target, count: int, networks: Any) -> Figures:
    """One POST for so many servers, until all are ACTIVE."""
    api = target.compute()
    with metered(target) as meter:
        boot(api, target, "multi", count, networks)
        until_active(api, "multi", count)
    remove(target, "multi", 8)
    return {"active_s": round(meter["seconds"], 2), "cpu_ms": round(meter["cpu"] / count * 1000, 1),
            "foreign": meter["foreign"]}  # fmt: skip


def reading(target: Target, servers: int, seconds: float, networks: Any) -> Figures:
    """GET of all servers in detail, of one, and of the flavors, while so many are there."""
    api = target.compute()
    while (have := len(listed(api, "name=fill"))) < servers:
        batch, count = f"fill{have}-", min(20, servers - have)
        boot(api, target, batch, count, networks)
        until_active(api, batch, count)
    ids = listed(api, "name=fill")
    figures: Figures = {}
    for name, path in (("detail", "/servers/detail?limit=1000"), ("list", "/servers?limit=1000"),
                       ("show", f"/servers/{ids[0]}"), ("flavors", "/flavors/detail")):  # fmt: skip
        api.call("GET", path)
        spent: list[float] = []
        with metered(target) as meter:
            while sum(spent) < seconds:
                started = time.perf_counter()
                api.call("GET", path)
                spent.append(time.perf_counter() - started)
        figures[f"{name}_p50_ms"] = percentile(spent, 50)
        figures[f"{name}_cpu_ms"] = round(meter["cpu"] / len(spent) * 1000, 1)
        figures["foreign"] = meter["foreign"]
    for name, paths in (("show8", [f"/servers/{server}" for server in ids]), ("flavors8", ["/flavors/detail"])):
        figures[f"{name}_per_s"] = _answers_a_second(target, paths, 8, seconds)
    remove(target, "fill", 8)
    return figures


def _answers_a_second(target: Target, paths: list[str], clients: int, seconds: float) -> float:
    """How many GETs of the paths so many clients get answered in a second."""

    def work(number: int) -> list[float]:
        api = target.compute()
        spent: list[float] = []
        end = time.perf_counter() + seconds
        while (started := time.perf_counter()) < end:
            api.call("GET", paths[(number + clients * len(spent)) % len(paths)])
            spent.append(time.perf_counter() - started)
        return spent

    started = time.perf_counter()
    return round(len(together(clients, work)) / (time.perf_counter() - started), 1)


SECTIONS: dict[str, Callable[[Target, argparse.Namespace], Figures]] = {
    "idle": lambda target, chosen: idle(target, chosen.idle),
    "single": lambda target, chosen: single(target, chosen.singles, chosen.networks),
    "burst1": lambda target, chosen: burst(target, chosen.burst // 2, 1, chosen.networks),
    "burst8": lambda target, chosen: burst(target, chosen.burst, 8, chosen.networks),
    "multi50": lambda target, chosen: multi(target, 50, chosen.networks),
    "reading": lambda target, chosen: reading(target, chosen.servers, chosen.seconds, chosen.networks),
}


def measured(target: Target, chosen: argparse.Namespace) -> Figures:
    """Every section that was chosen, against one cloud."""
    figures: Figures = {}
    for name in chosen.sections:
        _say(f"{target.name}: {name}")
        times = 1 if name in ("idle", "reading") else chosen.runs
        try:
            runs = [SECTIONS[name](target, chosen) for _ in range(times)]
        except (OSError, RuntimeError, TimeoutError, Refused) as error:  # the other sections still say something
            _say(f"  {target.name} failed: {error}")
            remove(target, ".", 8)
            continue
        figures[name] = {key: round(statistics.median(run[key] for run in runs), 2) for key in runs[0]}
        _say(f"  {figures[name]}")
    figures["after"] = {"rss_mb": round(target.rss())}
    return figures


# -- Kilonova -------------------------------------------------------------------------------------------------------


def kilonova(chosen: argparse.Namespace) -> Figures:
    """Start Kilonova, measure it, stop it, start it again; then with many hosts."""
    figures: Figures = {}
    with tempfile.TemporaryDirectory() as directory:
        with process.running(Path(directory), chosen.hosts) as cloud:
            target = log_in("kilonova", cloud.login, [cloud.pid])
            api = target.compute()
            started = time.perf_counter()
            server = boot(api, target, "first")
            until(partial(_active, api, server))
            first = time.perf_counter() - started
            figures["start"] = {"ready_s": cloud.ready_s, "first_active_s": round(cloud.ready_s + first, 2)}
            remove(target, "first", 1)
            figures |= measured(target, chosen)
        with process.running(Path(directory), chosen.hosts) as cloud:
            figures["start"]["again_s"] = cloud.ready_s
    _say(f"kilonova: start {figures['start']}")
    for hosts in chosen.many:
        figures[f"hosts {hosts}"] = _many(hosts, chosen.idle)
        _say(f"  {hosts} hosts: {figures[f'hosts {hosts}']}")
    return figures


def _many(hosts: int, seconds: float) -> Figures:
    """Start with many hosts, twice: until it is ready, until it rests; what it costs to do nothing."""
    with tempfile.TemporaryDirectory() as directory:
        with process.running(Path(directory), hosts) as cloud:
            target = log_in("kilonova", cloud.login, [cloud.pid])
            first = {"ready_s": cloud.ready_s, "known_s": round(cloud.ready_s + _until_it_rests(target), 1)}
        with process.running(Path(directory), hosts) as cloud:
            target = log_in("kilonova", cloud.login, [cloud.pid])
            _until_it_rests(target)
            return first | {"again_s": cloud.ready_s} | idle(target, seconds)


def _until_it_rests(target: Target) -> float:
    """Seconds until it uses less than a tenth of a core for two seconds: until then it still reports its hosts."""
    started, calm = time.perf_counter(), 0
    while calm < 2:
        before = target.cpu()
        time.sleep(1)
        calm = calm + 1 if target.cpu() - before < 0.1 else 0
    return time.perf_counter() - started - calm


def there(name: str, login: Path, pids: Path | None, chosen: argparse.Namespace) -> Figures:
    """Measure a cloud that runs already."""
    return measured(log_in(name, openrc(login), pids_in(pids or login.parent / "run")), chosen)


def _say(text: str) -> None:
    print(time.strftime("%T"), text, file=sys.stderr, flush=True)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--peer-openrc", type=Path, metavar="FILE", help="OS_* of an administrator of the cloud to compare with")
    add("--peer-pids", type=Path, metavar="DIR", help="its *.pid files (default: run/ beside the openrc)")
    add("--openrc", type=Path, metavar="FILE", help="measure a Kilonova that runs already, with run/*.pid beside it")
    add("--hosts", type=int, default=40, help="simulated hypervisors (default %(default)s)")
    add("--many", type=int, nargs="*", default=[1000, 10000], help="also start with so many hosts (%(default)s)")
    add("--sections", nargs="*", choices=list(SECTIONS), default=list(SECTIONS), help="which (default: all)")
    add("--runs", type=int, default=3, help="times that a section is run; medians are shown (default %(default)s)")
    add("--singles", type=int, default=20)
    add("--burst", type=int, default=100, help="servers of a burst (default %(default)s)")
    add("--servers", type=int, default=1000, help="servers while lists are read (default %(default)s)")
    add("--seconds", type=float, default=5.0, help="of reading one thing again and again (default %(default)s)")
    add("--idle", type=float, default=10.0, help="seconds of doing nothing (default %(default)s)")
    add("--networks", choices=("none", "auto"), default="none", help="of the servers (default %(default)s)")
    add("--json", type=Path, metavar="FILE", help="write the figures there as well")
    chosen = parser.parse_args()
    figures = {"kilonova": there("kilonova", chosen.openrc, None, chosen) if chosen.openrc else kilonova(chosen)}
    if chosen.peer_openrc:
        figures["peer"] = there("peer", chosen.peer_openrc, chosen.peer_pids, chosen)
    if chosen.json:
        chosen.json.write_text(json.dumps(figures, indent=1) + "\n")
    print(report.table(figures))


if __name__ == "__main__":
    main()
