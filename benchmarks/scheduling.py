"""What a scheduling decision costs: decoded request spec to the claim's 204, with our Placement in the same process.

`python -m benchmarks.scheduling --hosts 1000` prints CPU milliseconds of one decision and of one server in a request
for fifty, and the time per stage of the last of each.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from kilonova.bus.calls import SelectDestinations
from kilonova.clients.placement import HttpPlacement
from kilonova.clients.rest import FixedToken, RestClient
from kilonova.core import ids
from kilonova.core.context import Context
from kilonova.http.transport import WsgiTransport
from kilonova.placement.app import make_app
from kilonova.placement.store.prepare import prepare
from kilonova.scheduler.service import Scheduler
from kilonova.scheduler.settings import SchedulerSettings
from kilonova.sql.engine import Database
from tests.scheduler.world import Cloud, spec_of

BATCH = 50


def placement(directory: Path) -> HttpPlacement:
    """A client of a fresh Placement in this process."""
    database = Database(f"sqlite:///{directory}/placement.db")
    prepare(database)
    app = make_app(database)

    def as_admin(environ: dict[str, Any], start_response: Any) -> Any:
        environ["kilonova.context"] = Context(overwrite=False, roles=["admin"], project_id="p", user_id="u")
        return app(environ, start_response)

    rest = RestClient("placement", "http://here", WsgiTransport(as_admin), FixedToken("t"), microversion="placement")
    return HttpPlacement(rest)


def cloud_of(directory: Path, client: HttpPlacement, hosts: int) -> Cloud:
    """So many equal hosts, in the tables and in Placement."""
    cloud = Cloud(directory)
    cloud.add_hosts(*(f"h{number}" for number in range(hosts)), vcpus=64, memory_mb=262144, local_gb=4000)
    for provider in cloud.placement.providers.values():
        generation = client.ensure_provider(provider.uuid, provider.uuid)
        client.set_inventory(provider.uuid, {key: {"total": n} for key, n in provider.capacity.items()}, generation)
    return cloud


def measure(hosts: int, decisions: int) -> dict[str, Any]:
    """CPU milliseconds, without the first decision, which reads all hosts."""
    with tempfile.TemporaryDirectory() as directory:
        client = placement(Path(directory))
        cloud = cloud_of(Path(directory), client, hosts)
        scheduler = Scheduler(cloud, client, SchedulerSettings())

        def decide(servers: int) -> float:
            asked = SelectDestinations(
                spec_of(num_instances=servers), tuple(ids.new_uuid() for _ in range(servers))
            )  # fmt: skip
            started = time.process_time()
            scheduler.select_destinations(Context(overwrite=False), asked)
            return (time.process_time() - started) * 1000

        def stages() -> dict[str, float]:
            return {name: round(spent * 1000, 2) for name, spent in scheduler.traces.newest()[0].seconds.items()}

        first = decide(1)
        single = sorted(decide(1) for _ in range(decisions))
        result = {"hosts": hosts, "first": round(first, 1), "one": round(single[decisions // 2], 2), "stages": stages()}
        batch = decide(BATCH) / BATCH
        cloud.close()
        return result | {"each_of_fifty": round(batch, 2), "stages_of_fifty": stages()}


def main() -> None:
    """Measure and print one JSON line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hosts", type=int, default=1000)
    parser.add_argument("--decisions", type=int, default=50)
    chosen = parser.parse_args()
    sys.stdout.write(json.dumps(measure(chosen.hosts, chosen.decisions)) + "\n")


if __name__ == "__main__":
    main()
