"""The two services as processes: ours with tokens of the embedded identity service, and the peer without any.

Ours is `kilonova placement` (one process of eight threads), or so many gunicorn workers. The peer is OpenStack's
Placement behind gunicorn with two synchronous workers and `noauth2`, which asks nobody about a token. Synchronous
workers close every connection after its answer; ours keeps them. Ours writes its access log, the peer writes none.
Ours keeps as many connections to its database as it has threads.
"""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import sqlalchemy as sa

from benchmarks.placement.worlds import CUSTOM_TRAITS, NETS, WIDE_CLASS
from benchmarks.target import Api, family, issue_token
from tests.deploy.processes import ROOT, Process, end

VERSION = "placement 1.39"
PEER = ROOT / ".venv-peers"
_PASSWORD = "bench-secret"
_KILONOVA = """
[DEFAULT]
state_path = {directory}
[placement_database]
connection = {database}
max_pool_size = 8
[keystone_authtoken]
www_authenticate_uri = {identity}
auth_type = password
auth_url = {identity}
username = nova
password = {password}
project_name = service
user_domain_id = default
project_domain_id = default
[embedded]
services = identity
listen_port = {port}
admin_password = {password}
service_password = {password}
"""
_PEER = """
[DEFAULT]
log_file = {directory}/placement.log
default_log_levels = placement=WARNING,sqlalchemy=WARNING,oslo_policy=ERROR
[api]
auth_strategy = noauth2
[placement_database]
connection = {database}
sync_on_startup = false
[oslo_policy]
enforce_new_defaults = false
"""


@dataclass(frozen=True)
class Service:
    """A Placement that answers. Ids of processes: its own, of the database server, and of what else works for it."""

    name: str
    url: str
    token: str
    own: tuple[int, ...]
    database: tuple[int, ...]
    beside: tuple[int, ...] = ()

    def api(self) -> Api:
        """A new connection."""
        return Api(self.url, self.token, VERSION)

    def cpu(self) -> float:
        """Seconds of CPU that it, its database and its identity service have used so far."""
        return sum(process.cpu for process in family((*self.own, *self.database, *self.beside)))

    def database_cpu(self) -> float:
        """That of the database's processes alone."""
        return sum(process.cpu for process in family(self.database))

    def rss(self) -> float:
        """Resident memory in MB of its own processes."""
        return sum(process.rss for process in family(self.own))


@contextmanager
def ours(directory: Path, database: str, workers: int) -> Iterator[Service]:
    """Placement on a filled database, and an identity service. workers: of gunicorn, 0 for `kilonova placement`."""
    directory.mkdir()
    first, second = _free_port(), _free_port()
    identity = f"http://127.0.0.1:{first}/identity"
    file = directory / "kilonova.conf"
    words = {"directory": directory, "database": database, "identity": identity}
    file.write_text(_KILONOVA.format(port=first, password=_PASSWORD, **words))
    embedded = Process("embedded", ["embedded", "--config-file", str(file)], directory)
    placement = Process(
        "placement", ["placement", "--config-file", str(file), "--port", str(second)], directory
    ) if not workers else Process(
        "placement", ["--bind", f"127.0.0.1:{second}", "--workers", str(workers), "--threads", "8", "--keep-alive",
                      "60", "kilonova.wsgi.placement:application"],
        directory, [sys.executable, "-m", "gunicorn"],
    )  # fmt: skip
    try:
        embedded.start()
        placement.start(KILONOVA_CONFIG=str(file))
        embedded.says("ready: ")
        placement.says("Booting worker" if workers else "ready: ")
        login = {"OS_USERNAME": "admin", "OS_PASSWORD": _PASSWORD, "OS_PROJECT_NAME": "admin",
                 "OS_USER_DOMAIN_ID": "default", "OS_PROJECT_DOMAIN_ID": "default"}  # fmt: skip
        token, _ = issue_token(f"{identity}/v3", login)
        url = f"http://127.0.0.1:{second}"
        yield Service("kilonova", url, token, (placement.pid,), database_processes(database), (embedded.pid,))
    finally:
        end([embedded, placement])


@contextmanager
def peer(environment: Path, directory: Path, database: str, fill: Callable[[], object]) -> Iterator[Service]:
    """OpenStack's Placement on an empty database; `fill` is called when it has its tables and all names."""
    directory.mkdir()
    port = _free_port()
    file = directory / "placement.conf"
    # with psycopg 3 it answers every claim with 500
    file.write_text(_PEER.format(directory=directory, database=database.replace("+psycopg:", "+psycopg2:")))
    programs = environment / "bin"
    command = [str(programs / "placement-manage"), "--config-file", str(file), "db", "sync"]
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    served = Process(
        "placement", ["--bind", f"127.0.0.1:{port}", "--workers", "2", "--backlog", "512", "--timeout", "900",
                      "--log-level", "info", "placement.wsgi.api:application"],
        directory, [str(programs / "gunicorn")],
    )  # fmt: skip
    try:
        served.start(OS_PLACEMENT_CONFIG_DIR=str(directory))
        served.says("Booting worker")
        url = f"http://127.0.0.1:{port}"
        service = Service("peer", url, "admin", (served.pid,), database_processes(database))
        api = service.api()  # the standard names it makes when it starts
        for path in (f"/resource_classes/{WIDE_CLASS}", *(f"/traits/{name}" for name in (*CUSTOM_TRAITS, *NETS))):
            api.call("PUT", path)
        fill()
        yield service
    finally:
        end([served])


def database_processes(url: str) -> tuple[int, ...]:
    """The id of the database server's first process, when it is one of this machine."""
    engine = sa.create_engine(url)
    with engine.connect() as connection:
        if engine.dialect.name == "postgresql":
            own = int(connection.execute(sa.text("SELECT pg_backend_pid()")).scalar_one())
            found = Path(f"/proc/{own}/stat").read_text().rpartition(")")[2].split()[1]
        elif engine.dialect.name in ("mysql", "mariadb"):
            found = Path(str(connection.execute(sa.text("SELECT @@pid_file")).scalar_one())).read_text()
        else:
            return ()
    engine.dispose()
    return (int(found),)


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
