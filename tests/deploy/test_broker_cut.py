"""The broker is killed, or cut off from everybody, in the middle of builds and deletes: all end stable."""

from __future__ import annotations

import time
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from tests.deploy.balancer import Balancer
from tests.deploy.deployment import HOSTS, Ports, deployment
from tests.deploy.load import Load
from tests.deploy.people import People, clear, quiet
from tests.rabbitmq import OwnBroker
from tests.scenario.stage import becomes, create

BUILDS = 30
AWAY = 12.0  # seconds
STABLE_WITHIN = 120.0


class Line:
    """A broker of the test's own, and the way of everybody to it."""

    def __init__(self) -> None:
        self.broker = OwnBroker()
        self.broker.start()
        self.way = Balancer(Ports.free().embedded, [urlsplit(self.broker.url).port or 0])
        self.way.start()
        self.url = f"rabbit://guest:guest@127.0.0.1:{self.way.port}/"

    def close(self) -> None:
        self.way.stop()
        self.broker.remove()


@pytest.fixture(scope="module")
def line() -> Iterator[Line]:
    made = Line()
    yield made
    made.close()


@pytest.fixture(scope="module")
def people(line: Line, tmp_path_factory: pytest.TempPathFactory) -> Iterator[People]:
    with deployment("mariadb", tmp_path_factory.mktemp("broker"), transport_url=line.url) as made:
        found = People(made)
        found.settle_in(2 * HOSTS)
        time.sleep(2)  # RabbitMQ 3.10 never again elects the leader of a queue that was made within a second of a kill
        yield found


@pytest.mark.parametrize("how", ["killed", "cut off", "cut off and forgotten"])
def test_a_broker_that_is_away_leaves_no_server_in_between(people: People, line: Line, how: str) -> None:
    load = Load(people, BUILDS)
    load.start()
    load.reaches(BUILDS // 2)
    if how == "killed":
        line.broker.kill()
    else:
        line.way.cut()
    time.sleep(AWAY)
    if how == "killed":
        line.broker.start()
    else:
        line.way.mend(forget="forgotten" in how)
    load.end()
    quiet(people, STABLE_WITHIN)
    clear(people)
    becomes(people.demo, create(people.demo), "ACTIVE", 30)
    clear(people)
