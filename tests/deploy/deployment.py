"""A deployment: databases, a virtual host, a configuration file, two processes of each service, and a balancer each.

The API and Placement stand behind one address each; agents have a configuration file of their own beside the common.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kilonova.cells import registry
from kilonova.clients.rest import Body
from kilonova.db.prepare import prepare_api, prepare_cell
from kilonova.http.transport import SocketTransport
from kilonova.sql.engine import Database
from tests.deploy.balancer import Balancer
from tests.deploy.processes import Process, end
from tests.deploy.servers import databases
from tests.http.compute.cloud import PASSWORD, Client, login
from tests.rabbitmq import virtual_host

DATABASES = ("api", "cell0", "cell1", "placement", "identity", "images", "network", "volumes")
HOSTS = 3
"""Simulated hypervisors of an agent."""


@dataclass(frozen=True)
class Ports:
    """Where the services listen."""

    embedded: int
    compute: int
    placement: int
    apis: tuple[int, int]
    placements: tuple[int, int]

    @classmethod
    def free(cls) -> Ports:
        """Ports that nobody has."""
        sockets = [socket.socket() for _ in range(7)]
        try:
            for one in sockets:
                one.bind(("127.0.0.1", 0))
            embedded, compute, placement, *rest = (one.getsockname()[1] for one in sockets)
        finally:
            for one in sockets:
                one.close()
        return cls(embedded, compute, placement, (rest[0], rest[1]), (rest[2], rest[3]))


@dataclass
class Deployment:
    """Processes by name (`api-1`, `api-2`, `agent-1` …), the first users, and where everything is."""

    kind: str
    directory: Path
    ports: Ports
    config: Path
    url: Any
    databases: tuple[str, ...] = DATABASES
    processes: dict[str, Process] = field(default_factory=dict)

    def add(self, name: str, *words: str) -> Process:
        """A process that is not started yet. Words begin with the subcommand."""
        made = Process(name, [*words, "--config-file", str(self.config)], self.directory)
        self.processes[name] = made
        return made

    def agent(self, number: int, transport_url: str = "") -> Process:
        """An agent of its own state and host names, not started yet."""
        state = self.directory / f"agent-{number}"
        state.mkdir()
        own = self.directory / f"agent-{number}.conf"
        lines = [f"[DEFAULT]\nstate_path = {state}\nhost = node{number}"]
        lines += [f"transport_url = {transport_url}"] if transport_url else []
        own.write_text("\n".join([*lines, f"[simulated]\nhosts = {HOSTS}\nhost_prefix = node{number}-\n"]))
        made = self.add(f"agent-{number}", "agent")
        made.more("--config-file", str(own))
        return made

    def login(self, user: str, project: str) -> Client:
        """A client with a token of its own."""
        return login(self.transport(), user, project, PASSWORD)  # type: ignore[arg-type]

    def transport(self) -> ByPrefix:
        """To the services by the prefix that they would have in one process."""
        at = "http://127.0.0.1:{}".format
        embedded = at(self.ports.embedded)
        return ByPrefix({
            "/compute": at(self.ports.compute), "/placement": at(self.ports.placement),
            **{f"/{name}": embedded for name in ("identity", "image", "networking", "volume")},
        })  # fmt: skip


class ByPrefix:
    """A transport to a cloud whose services are at several addresses."""

    def __init__(self, addresses: Mapping[str, str]) -> None:
        self._addresses, self._socket = addresses, SocketTransport(timeout=60.0)

    def send(self, method: str, url: str, headers: Mapping[str, str], body: Body) -> tuple[int, dict[str, str], bytes]:
        """Send to the service's own address."""
        path = "/" + url.split("/", 3)[3]
        prefix = "/" + path.split("/", 2)[1].split("?")[0]
        return self._socket.send(method, self._addresses[prefix] + path, headers, body)


_POOL = "max_pool_size = 2\nmax_overflow = 8"  # for servers with the usual limits
_CREDENTIALS = """
auth_type = password
auth_url = {identity}
username = nova
password = service-secret
project_name = service
user_domain_id = default
project_domain_id = default
"""


def configuration(directory: Path, ports: Ports, url: Any, transport_url: str, more: str = "") -> Path:
    """The configuration file that all processes share."""
    identity = f"http://127.0.0.1:{ports.embedded}/identity"
    credentials = _CREDENTIALS.format(identity=identity)
    text = f"""
[DEFAULT]
transport_url = {transport_url}
state_path = {directory}
log_dir = {directory}/log
host = control
[api_database]
connection = {url("api")}
{_POOL}
[database]
connection = {url("cell1")}
{_POOL}
[placement_database]
connection = {url("placement")}
{_POOL}
[keystone_authtoken]
www_authenticate_uri = {identity}
{credentials}
[service_user]
{credentials}
[scheduler]
discover_hosts_in_cells_interval = 60
[embedded]
listen_port = {ports.embedded}
connection = {url("identity").replace("_identity", "_{service}")}
compute_url = http://127.0.0.1:{ports.compute}/v2.1
placement_url = http://127.0.0.1:{ports.placement}
private_cidr = 127.100.0.0/16
public_cidr = 127.101.0.0/24
admin_password = {PASSWORD}
service_password = service-secret
{more}
"""
    (directory / "log").mkdir(exist_ok=True)
    file = directory / "kilonova.conf"
    file.write_text(text)
    return file


def make_tables(url: Any, transport_url: str) -> None:
    """What an operator does once: the tables, and the cells in the registry."""
    for name, prepare in (("api", prepare_api), ("cell0", prepare_cell), ("cell1", prepare_cell)):
        database = Database(url(name))
        prepare(database)
        if name == "api":
            registry.map_cell0(database, url("cell0"))
            registry.create(database, name="cell1", transport_url=transport_url, database_connection=url("cell1"))
        database.dispose()


@contextmanager
def deployment(kind: str, directory: Path, more: str = "") -> Iterator[Deployment]:
    """A deployment on a kind of database, ready, with two agents; gone afterwards."""
    with ExitStack() as stack:
        transport_url = stack.enter_context(virtual_host())
        url = stack.enter_context(databases(kind, DATABASES))
        ports = Ports.free()
        made = Deployment(kind, directory, ports, configuration(directory, ports, url, transport_url, more), url)
        make_tables(url, transport_url)
        stack.callback(lambda: end(made.processes.values()))
        for port, backends in ((ports.compute, ports.apis), (ports.placement, ports.placements)):
            balancer = Balancer(port, list(backends))
            balancer.start()
            stack.callback(balancer.stop)
        start_all(made)
        yield made


def start_all(made: Deployment) -> None:
    """All processes at once, as after a power cut, until each is ready."""
    ports = made.ports
    made.add("embedded", "embedded")
    for number in (1, 2):
        made.add(f"placement-{number}", "placement", "--port", str(ports.placements[number - 1]))
        made.add(f"api-{number}", "api", "--port", str(ports.apis[number - 1]))
        made.add(f"conductor-{number}", "conductor", "--instance", str(number))
        made.add(f"scheduler-{number}", "scheduler", "--instance", str(number))
        made.agent(number)
    for process in made.processes.values():
        process.start()
    for process in made.processes.values():
        process.says("ready: ")
