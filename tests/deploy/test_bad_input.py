"""What an operator gets wrong, or has not started yet: each process says what it is, and goes on when it is mended."""

from __future__ import annotations

import socket
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.deploy.balancer import Balancer
from tests.deploy.deployment import HOSTS
from tests.deploy.people import People, clear
from tests.deploy.processes import Process, end
from tests.http.compute.cloud import until
from tests.scenario.stage import becomes, create

pytestmark = pytest.mark.parametrize("people", ["postgresql"], indirect=True)
SAID_WITHIN = 20.0


class Extra:
    """Processes of one test beside the deployment's."""

    def __init__(self, people: People, directory: Path) -> None:
        self._people, self._directory = people, directory
        self.made: list[Process] = []

    def start(self, *words: str, config: str) -> Process:
        """A process with lines of configuration that win over the deployment's."""
        file = self._directory / f"{len(self.made)}.conf"
        file.write_text(config)
        files = ("--config-file", str(self._people.made.config), "--config-file", str(file))
        self.made.append(Process(f"extra-{len(self.made)}", [*words, *files], self._directory))
        self.made[-1].start()
        return self.made[-1]


@pytest.fixture
def extra(people: People, tmp_path: Path) -> Iterator[Extra]:
    found = Extra(people, tmp_path)
    yield found
    end(found.made)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def at(url: str, port: int) -> str:
    """The same address at another port."""
    parts = urlsplit(url)
    return parts._replace(netloc=f"{parts.netloc.rpartition(':')[0] or parts.netloc}:{port}").geturl()


def setting(people: People, name: str) -> str:
    """A line of the deployment's configuration."""
    lines = people.made.config.read_text().splitlines()
    return next(line.split(" = ", 1)[1] for line in lines if line.startswith(f"{name} = "))


@pytest.mark.parametrize("words", [("api", "--port", "0"), ("conductor", "--instance", "9"),
                                   ("scheduler", "--instance", "9")], ids=lambda words: words[0])  # fmt: skip
def test_a_service_waits_for_its_database_and_its_broker(people: People, extra: Extra, words: tuple[str, ...]) -> None:
    url, transport = people.made.url("api"), setting(people, "transport_url")
    databases, brokers = free_port(), free_port()
    ways = [Balancer(databases, [urlsplit(url).port or 5432]), Balancer(brokers, [urlsplit(transport).port or 5672])]
    port = free_port()
    process = extra.start(
        *(str(port) if word == "0" else word for word in words),
        config=f"[DEFAULT]\ntransport_url = {at(transport, brokers)}\n"
        f"[api_database]\nconnection = {at(url, databases)}\n",
    )
    process.says("waits: The database", SAID_WITHIN)
    ways[0].start()
    process.says(f"waits: The message broker at 127.0.0.1:{brokers}", SAID_WITHIN)
    ways[1].start()
    process.says("ready: ")
    for way in ways:
        way.stop()


def test_a_service_that_waits_ends_when_it_is_told_to(people: People, extra: Extra) -> None:
    nowhere = at(people.made.url("api"), free_port())
    process = extra.start("conductor", config=f"[api_database]\nconnection = {nowhere}\n")
    process.says("waits: The database", SAID_WITHIN)
    process.terminate()
    assert process.ends(10) == 0


@pytest.mark.parametrize("words", [("conductor", "--instance", "9"), ("agent",), ("api", "--port", "1")])
def test_a_broker_that_refuses_the_password_ends_a_service_with_one_sentence(
    people: People, extra: Extra, tmp_path: Path, words: tuple[str, ...]
) -> None:
    parts = urlsplit(setting(people, "transport_url"))
    wrong = parts._replace(netloc=f"{parts.username}:wrong@{parts.hostname}:{parts.port or 5672}").geturl()
    process = extra.start(*words, config=f"[DEFAULT]\ntransport_url = {wrong}\nstate_path = {tmp_path}\nhost = other\n")
    assert process.ends() == 1
    line = process.output.splitlines()[-1]
    assert line.startswith("kilonova: The message broker at ")
    assert "wrong" not in line
    assert "refuse" in line


def test_a_second_agent_of_the_same_hosts_takes_nothing_from_the_first(
    people: People, extra: Extra, tmp_path: Path
) -> None:
    server = create(people.demo)
    becomes(people.demo, server, "ACTIVE", 30)
    before = hosts(people)
    second = extra.start(
        "agent",
        config=f"[DEFAULT]\nstate_path = {tmp_path}\nhost = node1\nlog_dir = {tmp_path}\n"
        f"[simulated]\nhosts = {HOSTS}\nhost_prefix = node1-\n",
    )
    second.says("ready: ")
    log = tmp_path / "kilonova-agent.log"
    until(lambda: "another agent serves it" in log.read_text(), SAID_WITHIN)
    assert hosts(people) == before
    others = [create(people.demo) for _ in range(2 * HOSTS)]
    for other in others:
        becomes(people.demo, other, "ACTIVE", 30)
    assert not sqlite3.connect(tmp_path / "guests.db").execute("SELECT * FROM guests").fetchall()
    clear(people)


def hosts(people: People) -> list[tuple[str, str]]:
    """Host and node uuid."""
    rows = people.admin.get("/os-hypervisors/detail")["hypervisors"]
    return sorted((row["hypervisor_hostname"], row["id"]) for row in rows)
