"""Kilonova as one process per service, to be measured beside a peer that is laid out the same way.

`python -m benchmarks.region DIRECTORY` starts it on MariaDB and RabbitMQ with the process counts of the peer: two for
Compute and two for Placement behind one port each (gunicorn, which must be installed), two conductors, two schedulers,
four agents of ten hosts, the embedded services. It writes `openrc` and `run/*.pid` there and runs until Ctrl-C. Then

    python -m benchmarks.cloud --openrc DIRECTORY/openrc --peer-openrc FILE

The servers are those of KILONOVA_TEST_MARIADB and KILONOVA_TEST_RABBITMQ; what it makes on them is gone at the end.
"""

from __future__ import annotations

import argparse
import signal
import sys
import threading
from contextlib import ExitStack
from pathlib import Path

from tests.deploy.deployment import DATABASES, Deployment, Ports, configuration, make_tables
from tests.deploy.processes import Process, end
from tests.deploy.servers import databases
from tests.http.compute.cloud import PASSWORD
from tests.rabbitmq import virtual_host

AGENTS, HOSTS, TWICE = 4, 10, ("conductor", "scheduler")
_OPENRC = """
export OS_AUTH_URL=http://127.0.0.1:{port}/identity OS_USERNAME=admin OS_PASSWORD={password} OS_PROJECT_NAME=admin
export OS_USER_DOMAIN_ID=default OS_PROJECT_DOMAIN_ID=default
"""


def gunicorn(made: Deployment, service: str, port: int, threads: int) -> Process:
    """Two workers of a service on one port."""
    words = ["--bind", f"127.0.0.1:{port}", "--workers", "2", "--threads", str(threads), "--keep-alive", "60"]
    command = [sys.executable, "-m", "gunicorn"]
    return Process(service, [*words, f"kilonova.wsgi.{service}:application"], made.directory, command)


def start(made: Deployment, threads: int) -> list[Process]:
    """Everything, ready."""
    served = [gunicorn(made, "placement", made.ports.placement, threads),
              gunicorn(made, "compute", made.ports.compute, threads)]  # fmt: skip
    made.add("embedded", "embedded")
    for number in (1, 2):
        for service in TWICE:
            made.add(f"{service}-{number}", service, "--instance", str(number))
    for number in range(1, AGENTS + 1):
        made.agent(number, hosts=HOSTS)
    for process in (*served, *made.processes.values()):
        process.start(KILONOVA_CONFIG=str(made.config))
    for process in made.processes.values():
        process.says("ready: ")
    return [*served, *made.processes.values()]


def main() -> None:
    """Run until a signal."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path, help="a new directory")
    parser.add_argument("--threads", type=int, default=8, help="of each HTTP worker (default %(default)s)")
    chosen = parser.parse_args()
    directory: Path = chosen.directory
    stopped = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.set())
    (directory / "run").mkdir(parents=True)
    with ExitStack() as stack:
        transport_url = stack.enter_context(virtual_host())
        url = stack.enter_context(databases("mariadb", DATABASES))
        ports = Ports.free()
        config = configuration(directory, ports, url, transport_url, pool="max_pool_size = 5\nmax_overflow = 5")
        make_tables(config, url, {"cell1": transport_url})
        made = Deployment(directory, ports, config, url, DATABASES)
        processes = start(made, chosen.threads)
        stack.callback(lambda: end(processes))
        for process in processes:
            (directory / "run" / f"{process.name}.pid").write_text(f"{process.pid}\n")
        (directory / "openrc").write_text(_OPENRC.format(port=ports.embedded, password=PASSWORD))
        print(f"ready: {directory / 'openrc'}", flush=True)
        stopped.wait()


if __name__ == "__main__":
    main()
