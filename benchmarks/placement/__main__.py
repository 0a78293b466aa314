"""What Placement costs, measured over HTTP in one run: ours, with tokens, and OpenStack's beside it, without.

`python -m benchmarks.placement --shape flat --providers 1000 --database sqlite` measures one case; options name
several of each. Every figure is taken of ours and then of the peer, so that what else the machine does meets both.
PostgreSQL and MariaDB are the servers of KILONOVA_TEST_POSTGRESQL and KILONOVA_TEST_MARIADB. The peer is that of
`make peers`; without it, and above `--peer-most` providers, ours is measured alone.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from benchmarks.cloud import Figures
from benchmarks.placement import measures, queries, services
from benchmarks.placement.filling import fill_ours, fill_peer
from benchmarks.placement.inside import inside
from benchmarks.placement.services import Service
from benchmarks.placement.table import table
from benchmarks.placement.worlds import SHAPES, World
from benchmarks.target import Refused
from tests.deploy.servers import databases

DATABASES = ("sqlite", "postgresql", "mariadb")
CLIENTS = 8

Measure = Callable[[Service], Figures]
Case = dict[str, dict[str, Figures]]
"""Figures by who and by name."""


def measures_of(world: World, chosen: argparse.Namespace) -> Iterator[tuple[str, Measure]]:
    """What is measured of each service, in order: what only reads, what writes, what is left in memory."""
    seconds: float = chosen.seconds
    asked = queries.candidates(world)
    for name, path in asked.items():
        least = 1 if world.shape == "wide" else 3
        yield f"candidates: {name}", partial(measures.get, paths=[path], seconds=seconds, least=least)
    if world.shape == "wide":
        return
    some = random.Random(1).sample(range(world.hosts), min(50, world.hosts))
    read = queries.reads(world, some)
    for name, paths in read.items():
        yield f"get: {name}", partial(measures.get, paths=paths, seconds=seconds, least=3)
    for name, paths in (("provider", read["provider"]), ("candidates, limit 10", [asked["simple, limit 10"]])):
        yield f"8 clients: {name}", partial(measures.rate, paths=paths, clients=CLIENTS, seconds=seconds)
    claims = partial(measures.claims, world=world, seconds=seconds)
    yield "claims: 1 client", partial(claims, clients=1)
    yield "claims: 8 clients", partial(claims, clients=CLIENTS)
    yield "claims: 8 clients, 10 hosts", partial(claims, clients=CLIENTS, hot=10)
    yield "claims: until 10 hosts are full", partial(measures.fill_up, world=world, clients=CLIENTS)
    beside = partial(measures.reading_beside_writes, world=world, path=asked["simple, limit 1000"], seconds=seconds)
    yield "candidates beside inventories that change", beside


def measured(world: World, kind: str, chosen: argparse.Namespace) -> Case:
    """Every figure of one world on one kind of database."""
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        if kind == "sqlite":
            urls = {name: f"sqlite:///{directory}/{name}.db" for name in ("ours", "peer")}
        else:
            found = stack.enter_context(databases(kind, ("ours", "peer")))
            urls = {name: found(name) for name in ("ours", "peer")}
        count = fill_ours(urls["ours"], world)
        figures: Case = {"kilonova": {}, "peer": {}, "inside": {}}
        if chosen.inside:
            figures["inside"] = {
                name: one for name, one in inside(urls["ours"], world).items() if _wanted(f"inside: {name}", chosen)
            }
        both = [stack.enter_context(services.ours(directory / "kilonova", urls["ours"], chosen.workers))]
        if (chosen.peer / "bin").exists() and count <= chosen.peer_most:
            fill = partial(fill_peer, urls["peer"], world)
            both.append(stack.enter_context(services.peer(chosen.peer, directory / "peer", urls["peer"], fill)))
        for service in both:
            figures[service.name]["memory"] = _memory(service, world, count)
        for name, measure in measures_of(world, chosen):
            if _wanted(name, chosen):
                for service in both:
                    figures[service.name][name] = _figures(service, name, measure)
        for service in both:
            figures[service.name]["memory after"] = {"rss_mb": round(service.rss())}
        return figures


def _wanted(name: str, chosen: argparse.Namespace) -> bool:
    return not chosen.only or re.search(chosen.only, name) is not None


def _figures(service: Service, name: str, measure: Measure) -> Figures:
    try:
        figures = measure(service)
    except (OSError, RuntimeError, Refused) as error:  # the other figures still say something
        figures = {"failed": str(error)[:200]}
    _say(f"  {service.name:9} {name}: {figures}")
    return figures


def _memory(service: Service, world: World, count: int) -> Figures:
    """Resident memory after one answer that needs no snapshot, and after the first candidates, summaries and all."""
    api = service.api()
    api.call("GET", "/resource_providers?name=none")
    before = service.rss()
    path = next(path for name, path in queries.candidates(world).items() if "limit 1" not in name)
    if world.shape != "wide":
        api.call("GET", path)
    after = service.rss()
    return {"rss_mb": round(after), "kb_per_provider": round((after - before) * 1024 / count, 2)}


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def options(arguments: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.placement", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--providers", type=int, nargs="+", default=[1000, 10_000], metavar="N", help="roots of a world")
    add("--shape", choices=SHAPES, nargs="+", default=["flat"], help="nested: five providers a root (default flat)")
    add("--database", choices=DATABASES, nargs="+", default=["sqlite"], help="(default sqlite)")
    add("--only", default="", metavar="REGEX", help="measure what matches, such as 'claims' or 'limit 1000'")
    add("--seconds", type=float, default=3.0, help="for each figure (default %(default)s)")
    add("--quick", action="store_true", help="half a second for each figure")
    add("--workers", type=int, default=0, help="serve ours by so many gunicorn workers (default: kilonova placement)")
    add("--peer", type=Path, default=services.PEER, metavar="DIRECTORY", help="its virtual environment (.venv-peers)")
    add("--peer-most", type=int, default=20_000, metavar="N", help="providers of its largest world (default 20000)")
    add("--no-inside", dest="inside", action="store_false", help="leave out what is measured without HTTP")
    add("--json", type=Path, metavar="FILE", help="keep the figures")
    chosen = parser.parse_args(arguments)
    if chosen.quick:
        chosen.seconds = 0.5
    return chosen


def main() -> None:
    """Measure every case and print a table of each."""
    chosen = options()
    figures: dict[str, Case] = {}
    for shape in chosen.shape:
        for hosts in chosen.providers if shape != "wide" else [1]:
            for kind in chosen.database:
                case = f"{shape} {hosts} {kind}"
                _say(case)
                figures[case] = measured(World(shape, hosts), kind, chosen)
                print(f"\n{case}\n\n{table(case, figures[case])}", flush=True)
    if chosen.json:
        chosen.json.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
