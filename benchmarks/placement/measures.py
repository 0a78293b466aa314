"""What is measured of a service over HTTP, from clients that are processes of their own where there are several.

Figures are milliseconds (`p50`, `p99`; for each request `cpu` of all processes of the service, and `database` of those
among them that are the database's) and rates; `bad` counts answers by status that were not wanted.
"""

from __future__ import annotations

import json
import multiprocessing
import random
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from benchmarks.cloud import Figures, metered, percentile, together
from benchmarks.placement import queries
from benchmarks.placement.services import Service
from benchmarks.placement.worlds import PROJECTS, World
from kilonova.core import ids

_TRIES = 12  # of one claim that another one was in the way of
_LISTS = ("allocation_requests", "provider_summaries", "resource_providers")

Sent = tuple[int, float, float]
"""Status, when it began, and seconds that it took."""


def get(service: Service, paths: Sequence[str], seconds: float, least: int) -> Figures:
    """GET of the paths in turn, for so long and at least so often."""
    api = service.api()
    spent: list[float] = []
    bad: Counter[str] = Counter()
    body = b""
    with _metered(service) as meter:
        while sum(spent) < seconds or len(spent) < least:
            started = time.perf_counter()
            status, _, body = api.send("GET", paths[len(spent) % len(paths)])
            spent.append(time.perf_counter() - started)
            if status != 200:
                bad[str(status)] += 1
                break
    if bad:
        return {"bad": dict(bad)}
    found = json.loads(body)
    sizes = [len(found[name]) for name in _LISTS if name in found]
    return _figures(spent, meter) | {"answers": sizes[0] if sizes else 1, "bytes": len(body)}


def rate(service: Service, paths: Sequence[str], clients: int, seconds: float) -> Figures:
    """The same from several clients."""

    def work(number: int) -> list[Sent]:
        api = service.api()
        sent: list[Sent] = []
        end = time.perf_counter() + seconds
        while (started := time.perf_counter()) < end:
            status, _, _ = api.send("GET", paths[(number + clients * len(sent)) % len(paths)])
            sent.append((status, started, time.perf_counter() - started))
        return sent

    with _metered(service) as meter:
        sent = together(clients, work)
    return _of_sent(sent, meter, 200)


def claims(service: Service, world: World, clients: int, seconds: float, hot: int | None = None) -> Figures:
    """PUT of allocations for new consumers on hosts by chance; `hot` says on how many only.

    A race that the client is told of is tried again, and counted; so are answers of 500 and above, which are not.
    """
    among = min(world.hosts, hot or world.hosts)
    service.api().call("GET", queries.candidates(world)["simple, limit 10"])  # as schedulers do before they claim

    def work(number: int) -> list[Sent]:
        chance, api, sent = random.Random(number), service.api(), []
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            sent.append(_claim(api, world.claim(chance.randrange(among)), chance))
        return sent

    with _metered(service) as meter:
        sent = together(clients, work)
    return _of_sent(sent, meter, 204)


def _claim(api: Any, amounts: dict[str, dict[str, int]], chance: random.Random) -> Sent:
    body = {
        "allocations": {uuid: {"resources": resources} for uuid, resources in amounts.items()},
        "consumer_generation": None, "consumer_type": "INSTANCE", "user_id": "bench-user",
        "project_id": chance.choice(PROJECTS),
    }  # fmt: skip
    path = f"/allocations/{ids.new_uuid()}"
    started = time.perf_counter()
    for _ in range(_TRIES):
        status, _, answer = api.send("PUT", path, body)
        if status != 409 or b"concurrent_update" not in answer:
            break
    return status, started, time.perf_counter() - started


def fill_up(service: Service, world: World, clients: int) -> Figures:
    """Claims of a large part of ten hosts until no more fit, from several clients: nothing may be sold twice."""
    hosts, size = range(min(10, world.hosts)), 16
    before = _used(service, world, hosts)

    def work(number: int) -> list[Sent]:
        chance, api, sent = random.Random(number), service.api(), []
        for n in [*hosts, *hosts, *hosts]:
            sent.append(_claim(api, world.claim(n, size), chance))
        return sent

    sent = together(clients, work)
    after = _used(service, world, hosts)
    made = sum(1 for status, _, _ in sent if status == 204)
    failed = sum(1 for status, _, _ in sent if status >= 500)
    over = sum(1 for used in after if used > world.processors.capacity)
    return {"claims": made, "oversold": over, "lost": sum(after) - sum(before) - made * size, "errors": failed}


def _used(service: Service, world: World, hosts: Sequence[int]) -> list[int]:
    api = service.api()
    paths = (f"/resource_providers/{world.processor(n)}/usages" for n in hosts)
    return [int(api.call("GET", path)["usages"]["VCPU"]) for path in paths]


def reading_beside_writes(service: Service, world: World, path: str, seconds: float) -> Figures:
    """One client asks for candidates while another changes one inventory after the other without a pause."""
    context = multiprocessing.get_context("fork")
    ended, queue = context.Event(), context.SimpleQueue()

    def write() -> None:
        try:
            queue.put(_change_inventories(service, world, ended))
        except Exception as error:
            queue.put(repr(error))

    writer = context.Process(target=write, daemon=True)
    writer.start()
    try:
        figures = get(service, [path], seconds, 3)
    finally:
        ended.set()
    changed = queue.get()
    writer.join()
    if isinstance(changed, str):
        raise RuntimeError(changed)
    statuses, per_s = changed
    wrong = {status: count for status, count in statuses.items() if status != "200"}
    return figures | {"writes_per_s": round(per_s, 1)} | ({"bad_writes": wrong} if wrong else {})


def _change_inventories(service: Service, world: World, ended: Any) -> tuple[dict[str, int], float]:
    """PUT of one inventory of one host after the other; answers by status, and how many a second."""
    api, statuses = service.api(), Counter[str]()
    stock = world.processors
    started = time.perf_counter()
    while not ended.is_set():
        count = sum(statuses.values())
        provider = f"/resource_providers/{world.processor(count % min(50, world.hosts))}"
        generation = api.call("GET", provider)["generation"]
        body = {"resource_provider_generation": generation, "total": stock.total, "allocation_ratio": stock.ratio,
                "max_unit": stock.total - count % 2}  # fmt: skip
        status, _, _ = api.send("PUT", f"{provider}/inventories/VCPU", body)
        statuses[str(status)] += 1
    return dict(statuses), sum(statuses.values()) / (time.perf_counter() - started)


@contextmanager
def _metered(service: Service) -> Iterator[Figures]:
    """`metered`, and the database's part."""
    before = service.database_cpu()
    with metered(service) as meter:
        yield meter
    meter["database"] = service.database_cpu() - before


def _of_sent(sent: list[Sent], meter: Figures, wanted: int) -> Figures:
    good = [seconds for status, _, seconds in sent if status == wanted]
    bad = Counter(str(status) for status, _, _ in sent if status != wanted)
    if not good:
        return {"bad": dict(bad)}
    began = min(started for _, started, _ in sent)
    ended = max(started + seconds for _, started, seconds in sent)
    figures = _figures(good, meter) | {"per_s": round(len(good) / (ended - began), 1)}
    return figures | ({"bad": dict(bad)} if bad else {})


def _figures(spent: list[float], meter: Figures) -> Figures:
    def each(name: str) -> float:
        return float(round(meter[name] / len(spent) * 1000, 2))

    figures = {
        "n": len(spent), "p50": percentile(spent, 50, 2), "p99": percentile(spent, 99, 2), "cpu": each("cpu"),
        "foreign": meter["foreign"],
    }  # fmt: skip
    return figures | ({"database": each("database")} if meter["database"] else {})
