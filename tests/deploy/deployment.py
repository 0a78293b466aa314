"""A deployment: databases, a virtual host, a configuration file, two processes of each service, and a balancer each.

The API and Placement stand behind one address each; agents have a configuration file of their own beside the common.
"""

from __future__ import annotations

import fcntl
import socket
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from kilonova.clients.rest import Body
from kilonova.http.transport import SocketTransport
from tests.deploy import peers as peers_
from tests.deploy.balancer import Balancer
from tests.deploy.processes import Process, command, end
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
    keystone: int
    compute: int
    placement: int
    apis: tuple[int, int]
    placements: tuple[int, int]

    @classmethod
    def free(cls) -> Ports:
        """Ports that nobody has."""
        sockets = [socket.socket() for _ in range(8)]
        try:
            for one in sockets:
                one.bind(("127.0.0.1", 0))
            embedded, keystone, compute, placement, *rest = (one.getsockname()[1] for one in sockets)
        finally:
            for one in sockets:
                one.close()
        return cls(embedded, keystone, compute, placement, (rest[0], rest[1]), (rest[2], rest[3]))


@dataclass
class Deployment:
    """Processes by name (`api-1`, `api-2`, `agent-1` …), the first users, and where everything is.

    peers: what runs in the place of ours, of `keystone` and `placement`.
    """

    directory: Path
    ports: Ports
    config: Path
    url: Any
    databases: tuple[str, ...]
    peers: frozenset[str] = frozenset()
    processes: dict[str, Process] = field(default_factory=dict)

    def add(self, name: str, *words: str) -> Process:
        """A process that is not started yet. Words begin with the subcommand."""
        made = Process(name, [*words, "--config-file", str(self.config)], self.directory)
        self.processes[name] = made
        return made

    def agent(self, number: int, transport_url: str = "", hosts: int = HOSTS) -> Process:
        """An agent of its own state and host names, not started yet."""
        state = self.directory / f"agent-{number}"
        state.mkdir()
        own = self.directory / f"agent-{number}.conf"
        lines = [f"[DEFAULT]\nstate_path = {state}\nhost = node{number}"]
        lines += [f"transport_url = {transport_url}"] if transport_url else []
        own.write_text("\n".join([*lines, f"[simulated]\nhosts = {hosts}\nhost_prefix = node{number}-\n"]))
        made = self.add(f"agent-{number}", "agent")
        made.more("--config-file", str(own))
        return made

    def first(self, kind: str) -> Process:
        """The first process of a kind, or the only one."""
        return self.processes.get(kind) or self.processes[f"{kind}-1"]

    def login(self, user: str, project: str) -> Client:
        """A client with a token of its own."""
        return login(self.transport(), user, project, PASSWORD)  # type: ignore[arg-type]

    def transport(self) -> ByPrefix:
        """To the services by the prefix that they would have in one process."""
        at = "http://127.0.0.1:{}".format
        embedded = at(self.ports.embedded)
        return ByPrefix({
            "/compute": at(self.ports.compute), "/scheduler": at(self.ports.compute),
            "/placement": at(self.ports.placement),
            **{f"/{name}": embedded for name in ("image", "networking", "volume")},
            "/identity": at(identity_port(self.ports, self.peers)),
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


POOL = "max_pool_size = 2\nmax_overflow = 4"  # for servers with the usual limits
SMALL_POOL = "max_pool_size = 1\nmax_overflow = 2"  # beside another deployment
_CREDENTIALS = """
auth_type = password
auth_url = {identity}
username = nova
password = service-secret
project_name = service
user_domain_id = default
project_domain_id = default
"""


def identity_port(ports: Ports, peers: frozenset[str]) -> int:
    """Where tokens come from."""
    return ports.keystone if "keystone" in peers else ports.embedded


def configuration(
    directory: Path, ports: Ports, url: Any, transport_url: str, *, own_cell: bool = True,
    peers: frozenset[str] = frozenset(), pool: str = POOL,
) -> Path:  # fmt: skip
    """The configuration file that all processes share. own_cell: they belong to cell1. pool: options of connections."""
    identity = f"http://127.0.0.1:{identity_port(ports, peers)}/identity"
    credentials = _CREDENTIALS.format(identity=identity)
    text = f"""
[DEFAULT]
transport_url = {transport_url}
state_path = {directory}
log_dir = {directory}/log
host = control
[api_database]
connection = {url("api")}
{pool}
[database]
{f"connection = {url('cell1')}" if own_cell else ""}
{pool}
[placement_database]
{"" if "placement" in peers else f"connection = {url('placement')}"}
{pool}
[keystone_authtoken]
www_authenticate_uri = {identity}
{credentials}
[service_user]
{credentials}
[scheduler]
discover_hosts_in_cells_interval = 60
[embedded]
services = {"" if "keystone" in peers else "identity,"}images,network,volumes
listen_port = {ports.embedded}
connection = {url("identity").replace("_identity", "_{service}")}
compute_url = http://127.0.0.1:{ports.compute}/v2.1
placement_url = http://127.0.0.1:{ports.placement}/placement
private_cidr = 127.100.0.0/16
public_cidr = 127.101.0.0/24
admin_password = {PASSWORD}
service_password = service-secret
"""
    (directory / "log").mkdir(exist_ok=True)
    file = directory / "kilonova.conf"
    file.write_text(text)
    return file


def make_tables(config: Path, url: Any, cells: Mapping[str, str]) -> None:
    """What an operator does once: the tables, and the cells in the registry. cells: transport URLs by name."""
    run = partial(_done, "--config-file", str(config))
    run("db", "sync", "--api")
    run("cell", "map_cell0", "--database_connection", url("cell0"))
    for name, transport_url in cells.items():
        options = ("--transport-url", transport_url, "--database_connection", url(name))
        run("cell", "create_cell", "--name", name, *options)
    own = [config.with_name(f"{name}.conf") for name in cells]
    run("db", "sync", *(word for file in own[:1] if file.exists() for word in ("--config-file", str(file))))


def _done(*words: str) -> None:
    done = command(*words[2:4], *words[:2], *words[4:])
    assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"


_held: list[bool] = []


@contextmanager
def alone() -> Iterator[None]:
    """No other process of pytest has a deployment meanwhile: two would take more connections than databases have."""
    with (Path(tempfile.gettempdir()) / "kilonova-deployment.lock").open("w") as file:
        if not _held:
            fcntl.flock(file, fcntl.LOCK_EX)
        _held.append(True)
        try:
            yield
        finally:
            _held.pop()


@contextmanager
def deployment(
    kind: str, directory: Path, cells: tuple[str, ...] = (), peers: frozenset[str] = frozenset(),
    transport_url: str = "",
) -> Iterator[Deployment]:  # fmt: skip
    """A deployment on a kind of database, ready, with two agents; gone afterwards. peers: see `Deployment`.

    Without `cells` there is one, on the virtual host of all, and two processes of each service. Each of `cells` has a
    virtual host and a database of its own, a conductor and an agent. transport_url: instead of a new virtual host.
    """
    with ExitStack() as stack:
        stack.enter_context(alone())
        given = bool(transport_url)
        transport_url = transport_url or stack.enter_context(virtual_host())
        transports = {cell: stack.enter_context(virtual_host()) for cell in cells}
        names = tuple(dict.fromkeys((*DATABASES, *cells)))
        url = stack.enter_context(databases(kind, names))
        ports = Ports.free()
        pool = SMALL_POOL if cells or peers or given else POOL
        config = configuration(directory, ports, url, transport_url, own_cell=not cells, peers=peers, pool=pool)
        made = Deployment(directory, ports, config, url, names, peers)
        for cell, transport in transports.items():
            own = f"[DEFAULT]\ntransport_url = {transport}\n[database]\nconnection = {url(cell)}\n"
            config.with_name(f"{cell}.conf").write_text(own)
        make_tables(config, url, transports or {"cell1": transport_url})
        stack.callback(lambda: end(made.processes.values()))
        balanced = [(ports.compute, ports.apis)]
        balanced += [] if "placement" in peers else [(ports.placement, ports.placements)]
        for port, backends in balanced:
            balancer = Balancer(port, list(backends))
            balancer.start()
            stack.callback(balancer.stop)
        for peer in _peers(made):
            stack.callback(lambda peer=peer: end([peer]))
        if cells:
            _with_cells(made, transports)
        else:
            _with_two_of_each(made)
        for process in made.processes.values():  # at once, as after a power cut
            process.start()
        for process in made.processes.values():
            process.says("ready: ")
        yield made


def _peers(made: Deployment) -> Iterator[Process]:
    """What runs in the place of ours, started and filled."""
    at = "http://127.0.0.1:{}".format
    identity = f"{at(identity_port(made.ports, made.peers))}/identity"
    if "keystone" in made.peers:
        yield peers_.keystone(made.directory / "keystone", made.url("identity"), made.ports.keystone)
        embedded = at(made.ports.embedded)
        peers_.fill(f"{identity}/v3", made.transport(), {
            "compute": f"{at(made.ports.compute)}/v2.1", "placement": f"{at(made.ports.placement)}/placement",
            "image": f"{embedded}/image", "network": f"{embedded}/networking", "volume": f"{embedded}/volume/v3",
        })  # fmt: skip
    if "placement" in made.peers:
        directory = made.directory / "placement"
        yield peers_.placement(directory, made.url("placement"), made.ports.placement, identity)


def _with_two_of_each(made: Deployment) -> None:
    made.add("embedded", "embedded")
    for number in (1, 2):
        if "placement" not in made.peers:
            made.add(f"placement-{number}", "placement", "--port", str(made.ports.placements[number - 1]))
        made.add(f"api-{number}", "api", "--port", str(made.ports.apis[number - 1]))
        made.add(f"conductor-{number}", "conductor", "--instance", str(number))
        made.add(f"scheduler-{number}", "scheduler", "--instance", str(number))
        made.agent(number)


def _with_cells(made: Deployment, transports: Mapping[str, str]) -> None:
    made.add("embedded", "embedded")
    made.add("placement", "placement", "--port", str(made.ports.placements[0]))
    made.add("api", "api", "--port", str(made.ports.apis[0]))
    made.add("scheduler", "scheduler")
    made.add("conductor", "conductor")
    for number, (cell, transport_url) in enumerate(transports.items(), 1):
        own = ("--config-file", str(made.config.with_name(f"{cell}.conf")))
        made.add(f"conductor-{cell}", "conductor", "--instance", str(number + 1)).more(*own)
        made.agent(number, transport_url)
